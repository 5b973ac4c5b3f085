"""Attacks that look for the smallest perturbation, on inputs without bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.networks.base import TwoLayerNet
from featavg.robustness.attacks import check_points
from featavg.robustness.norm import L2, Norm, only_l2
from featavg.robustness.radii import Radii
from featavg.robustness.view import AttackView

_BISECTIONS = 40
_RAYS = 32


def minimal_norm(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike,
    *,
    steps: int = 200,
    starts: int = 5,
    norm: str | Norm = "l2",
) -> Radii:
    r"""Return the smallest perturbations that established minimal-norm attacks find.

    Paper: none, an extension. DDN: Rony et al., "Decoupling direction and norm for efficient
    gradient-based L2 adversarial attacks and defenses" (CVPR 2019). FMN: Pintor et al., "Fast
    minimum-norm adversarial attacks through adaptive norm constraints" (NeurIPS 2021).

    The best of DDN from the point, FMN from the point, and FMN from the nearest points of the
    other label, each followed by a search along the boundary. All of it runs in the span of the
    weights, on every point at once; nothing is clipped to a box, and lengths are in units of each
    point's own first-order distance to the boundary, so that no scale is preferred.

    The bounds are those of an attack: `upper` is the norm of a perturbation that works, `lower` 0.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network. The attack lowers its binary decision.
    x, y : arrays of shape (points, coordinates) and (points,)
        The points and their labels in {-1, +1}.
    steps : int
        Steps of each attack.
    starts : int
        From how many of the nearest points of the other label to start; with many classes, of as
        many of them as possible.
    norm : {"l2"}
        The norm that is to be small.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> minimal_norm(net, [[3.0, 1.0], [2.0, 4.0]], [1, -1]).upper.round(4)   # sqrt(2) each
    array([1.4142, 1.4142])
    """
    points, labels = check_points(net, x, y)
    steps = checks.count("steps", steps)
    starts = checks.count("starts", starts, minimum=0)
    size = only_l2(norm, "minimal_norm")
    view = AttackView.of(net, points, labels)
    best = attack_all(view, points, steps, starts)
    norms, perturbations = best.turning(view, points)
    turns = (net.predict(points + perturbations) != labels) | np.isinf(norms)
    return Radii(np.zeros(len(labels)), norms, perturbations, size.name, turns)


def attack_all(view: AttackView, x: FloatArray, steps: int, starts: int) -> Best:
    """Run every attack and return the best of all."""
    best = Best.of(view)
    _ddn(view, best, steps)
    _fmn(view, best, steps, None)
    for start in _other_points(view, x, starts):
        _fmn(view, best, steps, start)
    follow_boundary(view, best)
    return best


@dataclass(eq=False)
class Best:
    """The smallest perturbation of each point so far."""

    norm: FloatArray
    u: FloatArray

    @classmethod
    def of(cls, view: AttackView) -> Best:
        """Start with nothing found; points that are wrong already need nothing."""
        u = np.zeros((view.span.weights.shape[1], len(view.y)))
        wrong = view.turned(u)
        return cls(np.where(wrong, 0.0, np.inf), u)

    def offer(self, view: AttackView, u: FloatArray) -> BoolArray:
        """Take what turns the decision with a smaller norm; return where anything turns it."""
        turned = view.turned(u)
        norm = np.linalg.norm(u, axis=0)
        better = turned & (norm < self.norm)
        self.norm[better] = norm[better]
        self.u[:, better] = u[:, better]
        return turned

    def turning(self, view: AttackView, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return norms and perturbations that turn the decision in all coordinates as well.

        What was found may lie so near to the boundary that rounding decides; it is stretched by
        as little as it takes.
        """
        norm, perturbations = self.norm.copy(), view.span.embed(self.u)
        for stretch in 1 + 10.0 ** np.arange(-14, -5):
            turned = view.net.predict(x + perturbations) != view.y
            short = ~turned & np.isfinite(norm) & (norm > 0)
            if not short.any():
                break
            perturbations[short] = stretch * view.span.embed(self.u[:, short])
            norm[short] = stretch * self.norm[short]
        return norm, perturbations


def follow_boundary(view: AttackView, best: Best, steps: int = 30) -> None:
    r"""Improve what was found: to the boundary along the ray, then along the boundary.

    A step goes to the nearest point of the boundary's tangent,
    :math:`u \leftarrow g\,(\langle g, u\rangle - q)/\|g\|^2` for the margin q and its gradient g,
    damped by half where the full step is not better.
    """
    found = np.isfinite(best.norm) & (best.norm > 0)
    if not found.any():
        return
    _shrink(view, best)
    for damping in np.repeat([1.0, 0.5, 0.1], steps // 3):
        margin, gradient = view.margin_and_gradient(best.u)
        square = np.square(gradient).sum(axis=0)
        factor = ((gradient * best.u).sum(axis=0) - margin) / np.where(square > 0, square, 1)
        target = gradient * factor
        u = np.where(square > 0, best.u + damping * (target - best.u), best.u)
        for stretch in (1 + 1e-12, 1 + 1e-7, 1 + 1e-4, 1 + 1e-2):
            best.offer(view, u * stretch)
    _shrink(view, best)


def _shrink(view: AttackView, best: Best) -> None:
    """Bisect along the ray from the point to what was found, keeping what turns the decision."""
    known = np.isfinite(best.norm)
    end = np.where(known, best.u, 0.0)
    low, high = np.zeros(len(view.y)), np.ones(len(view.y))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        turned = view.turned(end * middle)
        high = np.where(turned, middle, high)
        low = np.where(turned, low, middle)
    best.offer(view, end * high)


def _unit_length(view: AttackView) -> FloatArray:
    """Return each point's first-order distance to the boundary, or that of its neurons' kinks."""
    zero = np.zeros((view.span.weights.shape[1], len(view.y)))
    margin, gradient = view.margin_and_gradient(zero)
    slope = np.linalg.norm(gradient, axis=0)
    norms = np.linalg.norm(view.span.weights, axis=1)
    kinks = np.abs(view.z) / np.where(norms > 0, norms, np.inf)[:, None]
    kinks = np.where(norms[:, None] > 0, kinks, np.nan)
    fallback = np.nanmedian(kinks, axis=0) if (norms > 0).any() else np.ones(len(view.y))
    length = np.where(slope > 0, np.abs(margin) / np.where(slope > 0, slope, 1), fallback)
    return np.where(length > 0, length, 1.0)


def _positive(lengths: FloatArray) -> FloatArray:
    """Return lengths with 1 for 0, to divide by."""
    return np.where(lengths > 0, lengths, 1.0)


def _annealed(first: float, last: float, step: int, steps: int) -> float:
    return last + (first - last) * (1 + np.cos(np.pi * step / max(steps - 1, 1))) / 2


def _ddn(view: AttackView, best: Best, steps: int, shrink: float = 0.05) -> None:
    """Decoupled direction and norm: the norm shrinks where the decision is turned, else grows."""
    unit = _unit_length(view)
    u = np.zeros((view.span.weights.shape[1], len(view.y)))
    norm = unit.copy()
    for step in range(steps):
        _, gradient = view.margin_and_gradient(u)
        u = u + unit * _annealed(1.0, 0.01, step, steps) * -L2().steepest(gradient)
        u *= norm / _positive(np.linalg.norm(u, axis=0))
        turned = best.offer(view, u)
        norm *= np.where(turned, 1 - shrink, 1 + shrink)


def _fmn(view: AttackView, best: Best, steps: int, start: FloatArray | None) -> None:
    """Fast minimum norm: a ball that adapts to the boundary, and steps projected onto it."""
    unit = _unit_length(view)
    own = Best.of(view)
    u = np.zeros((view.span.weights.shape[1], len(view.y)))
    if start is not None:
        own.offer(view, start)
        _shrink(view, own)
        u = np.where(np.isfinite(own.norm), own.u, start)
    norm = np.full(len(view.y), np.inf)
    for step in range(steps):
        margin, gradient = view.margin_and_gradient(u)
        turned = own.offer(view, u)
        shrink = _annealed(0.05, 1e-4, step, steps)
        slope = np.linalg.norm(gradient, axis=0)
        length = np.linalg.norm(u, axis=0)
        estimate = length + np.abs(margin) / np.where(slope > 0, slope, np.inf)
        grown = np.where(np.isfinite(own.norm), norm * (1 + shrink), estimate)
        norm = np.where(turned, np.minimum(norm * (1 - shrink), own.norm), grown)
        norm = np.where(np.isfinite(norm) & (norm > 0), norm, unit)
        u = u + unit * _annealed(1.0, 0.01, step, steps) * -L2().steepest(gradient)
        u *= np.minimum(1, norm / _positive(np.linalg.norm(u, axis=0)))
    own.offer(view, u)
    best.offer(view, own.u)


def _other_points(view: AttackView, x: FloatArray, starts: int) -> list[FloatArray]:
    """Return, as perturbations, the nearest points with the other label and decision.

    Of a network of many classes, the nearest of each class, so that each way out is tried.
    """
    inside = (x @ view.span.basis).T.astype(np.float64)
    outputs = view.outputs(view.z)
    right = ~view.turned(np.zeros_like(inside))
    kind = outputs.argmax(axis=0)  # all 0 for a binary network
    squares = np.square(inside).sum(axis=0)
    found: list[FloatArray] = [np.zeros_like(inside) for _ in range(starts)]
    for sign in (1, -1):
        mine, others = np.flatnonzero(view.y == sign), np.flatnonzero((view.y == -sign) & right)
        if not len(mine) or not len(others) or not starts:
            continue
        distances = squares[others] - 2 * inside[:, mine].T @ inside[:, others]
        order = others[np.argsort(distances, axis=1, kind="stable")]
        if len(outputs) > 1:
            order = _first_of_each_kind(order, kind)
        for start in range(min(starts, order.shape[1])):
            found[start][:, mine] = inside[:, order[:, start]] - inside[:, mine]
    return found


def _first_of_each_kind(order: IntArray, kind: IntArray) -> IntArray:
    """Keep, of each row of points, the first of each kind, in order."""
    kinds = np.unique(kind[order[0]])
    first = np.stack([np.argmax(kind[order] == k, axis=1) for k in kinds], axis=1)
    return np.take_along_axis(order, np.sort(first, axis=1), axis=1)


def start_from(
    view: AttackView, best: Best, which: IntArray, points: Sequence[FloatArray | None]
) -> None:
    """Attack some of the points again, each from a given perturbation, and keep what is better."""
    some = view.subset(which)
    own = Best(best.norm[which].copy(), best.u[:, which].copy())
    start = np.stack([np.zeros(len(best.u)) if p is None else p for p in points], axis=1)
    for stretch in 1.2 ** np.arange(20):
        own.offer(some, start * stretch)
    rays = np.random.default_rng(0).standard_normal((_RAYS, len(best.u), 1))
    lengths = _unit_length(some)
    for ray in rays / np.linalg.norm(rays, axis=1, keepdims=True):
        for factor in 2.0 ** np.arange(-1, 6):
            own.offer(some, factor * lengths * ray)
    _fmn(some, own, 100, np.where(np.isfinite(own.norm), own.u, start))
    follow_boundary(some, own)
    best.norm[which], best.u[:, which] = own.norm, own.u
