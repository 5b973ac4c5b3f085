"""Checks of a result that do without what computed it."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from featavg.arrays import BoolArray, FloatArray
from featavg.networks.activation import refuse_smooth
from featavg.networks.shallow import ShallowNet

_ROUNDOFF = float(np.finfo(np.float64).eps)


def leaves(net: ShallowNet, point: FloatArray, own: BoolArray, opposing: BoolArray) -> bool:
    """Return whether an opposing output decides at a point, in exact arithmetic.

    Floating point is asked first, and believed where its errors cannot matter.
    """
    certain = _leaves_for_certain(net, point, own, opposing)
    return leaves_exactly(net, point, own, opposing) if certain is None else certain


def _leaves_for_certain(
    net: ShallowNet, point: FloatArray, own: BoolArray, opposing: BoolArray
) -> bool | None:
    """Return what floating point can tell, and None where it cannot."""
    slope = float(np.abs(refuse_smooth(net.activation, "the exact radius")).max())
    f = net.outputs(point[None])[:, 0]
    size = slope * (np.abs(net.weights) @ np.abs(point) + np.abs(net.biases))
    size = np.abs(net.second_layer) @ size
    size += np.abs(net.linear) @ np.abs(point) + np.abs(net.output_biases)
    error = 4 * _ROUNDOFF * (net.dim + len(net.weights) + 16) * size
    low, high = f - error, f + error
    if low[opposing].max() > high[own].max():
        return True
    return False if low[own].max() > high[opposing].max() else None


def leaves_exactly(net: ShallowNet, point: FloatArray, own: BoolArray, opposing: BoolArray) -> bool:
    """Return whether an opposing output decides at a point, in rational arithmetic."""
    f = exact_outputs(net, point)
    rivals, others = np.flatnonzero(own), np.flatnonzero(opposing)
    # of equal outputs the first decides
    return max((f[j], -j) for j in others) > max((f[j], -j) for j in rivals)


def is_level(net: ShallowNet, point: FloatArray, own: BoolArray, opposing: BoolArray) -> bool:
    """Return whether the largest own and the largest opposing output are equal up to rounding."""
    return _leaves_for_certain(net, point, own, opposing) is None


def exact_outputs(net: ShallowNet, point: FloatArray) -> list[Fraction]:
    """Return the outputs at a point, in rational arithmetic."""
    left, right = (Fraction(s) for s in refuse_smooth(net.activation, "the exact radius"))
    x, x_scale = _integers(point)
    hidden = []
    for w, b in zip(net.weights, net.biases, strict=True):
        row, scale = _integers(w)
        z = Fraction(sum(map(int.__mul__, row, x)), scale * x_scale) + Fraction(float(b))
        hidden.append((right if z >= 0 else left) * z)
    outputs = []
    for a, s, c in zip(net.second_layer, net.linear, net.output_biases, strict=True):
        total = Fraction(float(c))
        total += sum((Fraction(float(q)) * h for q, h in zip(a, hidden, strict=True)), Fraction(0))
        if s.any():
            row, scale = _integers(s)
            total += Fraction(sum(map(int.__mul__, row, x)), scale * x_scale)
        outputs.append(total)
    return outputs


def _integers(values: FloatArray) -> tuple[list[int], int]:
    """Return floats as whole numbers over one common denominator."""
    ratios = [float(v).as_integer_ratio() for v in values]
    scale = lcm(*(d for _, d in ratios)) if ratios else 1
    return [n * (scale // d) for n, d in ratios], scale
