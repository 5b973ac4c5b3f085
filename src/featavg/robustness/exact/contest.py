"""Contests between outputs: the ways in which the decision at one point can be turned."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.networks.activation import refuse_smooth
from featavg.networks.shallow import ShallowNet

_ROUNDOFF = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Contest:
    r"""One way for a decision to be turned: an output overtakes each of its rivals.

    With the perturbation v and the pre-activations u(v), it is won where for each rival k

    .. math:: \mathrm{lead}_k + \langle \mathrm{slope}_k, v\rangle
              + \sum_r g_{kr}\,\mathrm{relu}(u_r(v)) \ge 0

    (> where `strict`). Neurons with a positive gain g for some rival are the challengers; those
    with a negative one make the left side concave, which costs no search.

    Attributes
    ----------
    gains : array of shape (rivals, neurons)
        g, the difference of the second layer between the output and its rival.
    slopes, leads, lead_sizes : arrays of shape (rivals, coordinates), (rivals,) and (rivals,)
        The part without ReLUs at the point, and the size of what was summed up in each lead.
    strict : array of shape (rivals,)
        Whether a draw is lost.
    """

    gains: FloatArray
    slopes: FloatArray
    leads: FloatArray
    lead_sizes: FloatArray
    strict: BoolArray

    @cached_property
    def helping(self) -> FloatArray:
        """The positive gains."""
        return np.maximum(self.gains, 0)

    @cached_property
    def hindering(self) -> FloatArray:
        """The negative gains, without their sign."""
        return np.maximum(-self.gains, 0)

    @cached_property
    def challengers(self) -> IntArray:
        """The neurons that help against some rival."""
        return np.flatnonzero((self.gains > 0).any(axis=0))


@dataclass(frozen=True, eq=False)
class PointProblem:
    """The search around one point.

    Attributes
    ----------
    weights : array of shape (neurons, coordinates)
        The weights, in the coordinates that perturbations are looked for in.
    z, z_sizes : arrays of shape (neurons,)
        The pre-activations of the point, and the sizes of what was summed up in them.
    contests : tuple of Contest
        The ways to turn the decision.
    rounding : float
        Relative to such sizes, how far a computed sum can be from the true one.
    pieces : ExactPieces, optional
        What can be told in rational arithmetic.
    """

    weights: FloatArray
    z: FloatArray
    z_sizes: FloatArray
    contests: tuple[Contest, ...]
    rounding: float
    pieces: ExactPieces | None = None

    @property
    def size(self) -> float:
        """The largest pre-activation or lead."""
        leads = [np.abs(contest.leads).max(initial=0.0) for contest in self.contests]
        return float(max(np.abs(self.z).max(initial=0.0), *leads))

    @property
    def steepness(self) -> float:
        """The largest sum of the absolute values of a weight or slope."""
        rows = np.abs(np.vstack([self.weights, *(contest.slopes for contest in self.contests)]))
        return float(rows.sum(axis=1).max(initial=0.0))


class ExactPieces:
    """Linear pieces of the contests in rational arithmetic, where floating point sees nothing."""

    def __init__(self, net: ShallowNet, pairs: list[tuple[int, IntArray]]) -> None:
        self._net, self._pairs = net, pairs
        self._known: dict[tuple[int, int, bytes], Fraction | None] = {}

    def constant(self, contest: int, rival: int, on: BoolArray) -> Fraction | None:
        """Return what an output is ahead of a rival where these neurons are on, if constant."""
        key = contest, rival, on.tobytes()
        if key not in self._known:
            self._known[key] = self._constant(contest, rival, on)
        return self._known[key]

    def _constant(self, contest: int, rival: int, on: BoolArray) -> Fraction | None:
        net = self._net
        left, right = (Fraction(s) for s in refuse_smooth(net.activation, "the exact radius"))
        winner, rivals = self._pairs[contest]
        ours, theirs = winner, int(rivals[rival])
        gains = [
            (Fraction(a) - Fraction(b)) * (right if is_on else left)
            for a, b, is_on in zip(
                net.second_layer[ours].tolist(), net.second_layer[theirs].tolist(), on, strict=True
            )
        ]
        used = [(g, r) for r, g in enumerate(gains) if g]
        for coordinate in range(net.dim):
            slope = Fraction(float(net.linear[ours, coordinate]))
            slope -= Fraction(float(net.linear[theirs, coordinate]))
            slope += sum(g * Fraction(float(net.weights[r, coordinate])) for g, r in used)
            if slope:
                return None
        value = Fraction(float(net.output_biases[ours])) - Fraction(
            float(net.output_biases[theirs])
        )
        return value + sum((g * Fraction(float(net.biases[r])) for g, r in used), Fraction(0))


class Decision:
    """A network as contests, in the coordinates that perturbations are looked for in.

    Weights are scaled to order 1, which changes no decision.

    Parameters
    ----------
    net : ShallowNet
        The network.
    basis : array of shape (dim, coordinates), optional
        An orthonormal basis of the coordinates; by default, all of them.
    """

    def __init__(self, net: ShallowNet, basis: FloatArray | None = None) -> None:
        left, right = refuse_smooth(net.activation, "the exact radius")
        self.net = net
        # phi(z) = left z + (right - left) relu(z)
        self._gains = (right - left) * net.second_layer
        self._past = net.linear + left * net.second_layer @ net.weights
        self._past_bias = net.output_biases + left * net.second_layer @ net.biases
        self._past_size = np.abs(net.linear) + abs(left) * (
            np.abs(net.second_layer) @ np.abs(net.weights)
        )
        self._past_bias_size = np.abs(net.output_biases) + abs(left) * (
            np.abs(net.second_layer) @ np.abs(net.biases)
        )
        self.weights = net.weights if basis is None else net.weights @ basis
        self._slopes = self._past if basis is None else self._past @ basis
        self.rounding = 4 * _ROUNDOFF * (net.dim + len(net.weights) + 16)

    def problem(self, x: FloatArray, own: BoolArray, opposing: BoolArray) -> PointProblem:
        """Return the search around x for where an opposing output overtakes every own one."""
        net = self.net
        z = net.weights @ x + net.biases
        sizes = np.linalg.norm(net.weights, axis=1) * np.linalg.norm(x) + np.abs(net.biases)
        past = self._past @ x + self._past_bias
        past_sizes = self._past_size @ np.abs(x) + self._past_bias_size
        rivals = np.flatnonzero(own)
        contests = [
            Contest(
                gains=self._gains[output] - self._gains[rivals],
                slopes=self._slopes[output] - self._slopes[rivals],
                leads=past[output] - past[rivals],
                lead_sizes=past_sizes[output] + past_sizes[rivals],
                strict=rivals < output,
            )
            for output in np.flatnonzero(opposing)
        ]
        pieces = ExactPieces(net, [(int(o), rivals) for o in np.flatnonzero(opposing)])
        return PointProblem(self.weights, z, sizes, tuple(contests), self.rounding, pieces)


def span_basis(net: ShallowNet) -> FloatArray | None:
    """Return an orthonormal basis of all directions in which an output can change.

    A perturbation changes the outputs only by its part in the span of the weights, and that part
    is the shorter one. None where the span may be everything.
    """
    past = net.linear - net.linear[:1]
    rows = np.vstack([net.weights, past[np.abs(past).any(axis=1)]])
    if len(rows) >= net.dim or len(rows) == 0:
        return None
    largest = np.abs(rows).max(axis=1, keepdims=True)
    basis, _ = np.linalg.qr((rows / np.where(largest > 0, largest, 1)).T)
    return basis
