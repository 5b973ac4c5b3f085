"""The radius itself, not what an attack happened to find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featavg import checks
from featavg.arrays import BoolArray, FloatArray
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.shallow import ShallowNet
from featavg.robustness.exact.bracket import probability_radii
from featavg.robustness.exact.checking import proved_bound
from featavg.robustness.exact.contest import Decision
from featavg.robustness.exact.nearest import unless_beyond_reach
from featavg.robustness.exact.proof import Proof
from featavg.robustness.exact.search import kink_distance
from featavg.robustness.exact.tasks import (
    LONGEST,
    Limits,
    PointSearch,
    Task,
    geometry_of,
    in_range,
    search_all,
)
from featavg.robustness.exact.verify import is_level, leaves_exactly
from featavg.robustness.models import as_shallow, check_columns, point_shape
from featavg.robustness.norm import Norm, as_norm
from featavg.robustness.radii import Certificate, Radii


def exact_radii(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str | Norm = "l2",
    bounds: tuple[float, float] | None = None,
    target: Any = None,
    time_limit: float | None = None,
    max_nodes: int = 100_000,
    certificates: bool = True,
    jobs: int | None = None,
    progress: bool = False,
) -> Radii:
    r"""Return the smallest norm of a perturbation that turns the decision of each point.

    Paper: none, an extension; it is the radius of Section 3.2 for one point.

    For a network of one hidden layer of ReLUs and a point of class j it solves

    .. math:: \min \|\rho\| \quad\text{s.t.}\quad f_l(x + \rho) \ge f_j(x + \rho)
              \text{ for some } l \ne j

    exactly. With :math:`g = A_l - A_j`, the difference :math:`f_l - f_j` is
    :math:`\sum_{g > 0} g_r\,\mathrm{relu}(u_r) - \sum_{g < 0} |g_r|\,\mathrm{relu}(u_r)` and a
    linear part: the second sum is convex and costs nothing, and the search branches over which
    neurons of the first are on, with a convex program in each node and a semidefinite relaxation
    over all their patterns at once. Leaky ReLUs are a ReLU and a linear part.

    `lower` is a proof with rounding allowed for, and `upper` the norm of a perturbation, which is
    checked in rational arithmetic where floating point cannot tell. For the probability readout
    of a `MultiClassNet` both are the ends of a certified bracket.

    Parameters
    ----------
    model : network
        A `BinaryNet`, `MultiClassNet` or `ShallowNet`; a fitted `MLPClassifier` with one hidden
        layer, or a linear classifier, of scikit-learn; a `torch.nn.Sequential` of Linear, ReLU,
        Linear; a pipeline of affine steps and one of these. See `featavg.robustness.models`.
    X : array of shape (points, coordinates)
        The points; radii are in their units.
    y : array of shape (points,), optional
        Labels, as the model has them; a point that is not of its label has the radius 0. Without
        them, the radius within which the prediction stays.
    norm : {"l2", "linf"}
        The norm of perturbations.
    bounds : pair of float, optional
        The smallest and largest value a coordinate may have, such as (0, 1) for pixels.
    target : label, optional
        Only a decision for this label counts as turned.
    time_limit : float, optional
        Seconds for each point, after which it has bounds that differ.
    max_nodes : int
        When to give up on a point, in nodes of the search; the bounds then differ.
    certificates : bool
        Whether to keep the proofs, so that `Radii.verify` can check them; without them the result
        takes less memory.
    jobs : int, optional
        The number of processes; by default one for each core where the work is worth it.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> radii = exact_radii(net, [[3.0, 1.0], [0.0, 2.0], [1.0, 2.0]], [1, -1, 1])
    >>> radii.upper.round(6)             # to x1 = x2; and the last one is wrong already
    array([1.414214, 1.414214, 0.      ])
    >>> radii.exact
    array([ True,  True,  True])
    """
    limits = Limits(
        checks.count("max_nodes", max_nodes),
        None if time_limit is None else checks.scale("time_limit", time_limit),
    )
    jobs = None if jobs is None else checks.count("jobs", jobs)
    size = as_norm(norm)
    probability = isinstance(model, TwoLayerNet) and model.readout == "probability"
    if probability and model.output_count == 2:  # the likelier class has the larger output
        model, probability = model.with_readout("argmax"), False
    if probability:
        if bounds is not None or target is not None or size.name != "l2":
            raise InputError(
                "bounds, a target and norms other than 'l2' need the readout 'argmax' or "
                f"'logit-sum'; got {model!r}."
            )
        return probability_radii(model, X, y, limits, jobs, progress)
    net = as_shallow(model, point_shape(X))
    if net.in_span:
        _refuse_in_span(size, bounds)
    check_columns(model, X)
    points = flat_points(net, X)
    search = PointSearch(net, size.name, _bounds(bounds, points), limits)
    winners = net.winners(points)
    labels = net.labels[winners] if y is None else _own_labels(net, y, len(points))
    if target is not None:
        _sides(net, None, target)  # which refuses what is no label
    pairs = list(zip(labels.tolist(), net.labels[winners].tolist(), strict=True))
    # a point that is not of its label has the radius 0, whatever the target
    sides = {
        pair: _sides(net, pair[0], target if pair[0] == pair[1] else None) for pair in set(pairs)
    }
    tasks = [Task(x, *sides[pair]) for x, pair in zip(points, pairs, strict=True)]
    right = [i for i, task in enumerate(tasks) if task.own[winners[i]]]
    answers = search_all(search, [tasks[i] for i in right], jobs, progress)
    lower, upper = np.zeros(len(points)), np.zeros(len(points))
    perturbations = np.zeros_like(points)
    turns = np.ones(len(points), dtype=bool)
    for i, answer in zip(right, answers, strict=True):
        lower[i], upper[i], turns[i] = answer.lower, answer.upper, answer.turns
        perturbations[i] = answer.perturbation
    certificate = None
    if checks.flag("certificates", certificates):
        proofs = {i: answer.proof for i, answer in zip(right, answers, strict=True)}
        kept = [(task.own, task.opposing, proofs.get(i)) for i, task in enumerate(tasks)]
        size_of_net = len(net.weights), net.dim, len(net.labels)
        certificate = SearchCertificate(search.norm, search.bounds, tuple(kept), size_of_net)
    return Radii(lower, upper, perturbations, size.name, turns, certificate)


@dataclass(frozen=True, eq=False)
class SearchCertificate(Certificate):
    """For each point the outputs that keep and turn its decision, and the proof of its bound."""

    norm: str
    bounds: tuple[float, float] | None
    points: tuple[tuple[BoolArray, BoolArray, Proof | None], ...]
    size: tuple[int, int, int]
    """The neurons, coordinates and outputs of the network."""

    def check(self, radii: Radii, model: Any, X: ArrayLike) -> tuple[BoolArray, FloatArray]:
        """Return where perturbations turn the decision, and the bounds that are proved."""
        net = in_range(as_shallow(model, point_shape(X)))
        check_columns(model, X)
        if (len(net.weights), net.dim, len(net.labels)) != self.size:
            raise InputError(
                "model must be the one whose radii these are, of {} neurons, {} coordinates and {} "
                f"outputs; got {net!r}.".format(*self.size)
            )
        points = flat_points(net, X)
        if len(points) != len(self.points):
            raise InputError(
                f"X must hold the {len(self.points)} points of the radii; got {len(points)}."
            )
        decision = Decision(net)
        turned, proved = np.ones(len(points), dtype=bool), np.zeros(len(points))
        for i, (own, opposing, proof) in enumerate(self.points):
            x, found, upper = points[i], radii.perturbations[i], float(radii.upper[i])
            geometry = geometry_of(self.norm, self.bounds, x)
            if upper == 0 and own[net.winners(x[None])[0]]:
                turned[i] = is_level(net, x, own, opposing)
            elif np.isfinite(upper):
                turned[i] = geometry.length(found) <= upper * LONGEST and self._allows(x + found)
                turned[i] = turned[i] and leaves_exactly(net, x + found, own, opposing)
            if proof is not None:
                problem = decision.problem(x, own, opposing)
                proved[i] = proved_bound(problem, geometry, proof)
                if np.isinf(radii.lower[i]):
                    lengths = geometry.length(x), kink_distance(problem, geometry)
                    proved[i] = unless_beyond_reach(proved[i] * (1 + 1e-9), *lengths)
        return turned, proved

    def _allows(self, point: FloatArray) -> bool:
        low, high = self.bounds or (-np.inf, np.inf)
        return bool(low <= point.min() and point.max() <= high)


def _refuse_in_span(norm: Norm, bounds: Any) -> None:
    """Refuse what depends on axes that span coordinates leave open."""
    if bounds is not None or not norm.rotation_invariant:
        raise InputError(
            "bounds and norms other than 'l2' need the coordinates of the law, and those of the "
            f"span leave the orientation open; got norm={norm.name!r} and bounds={bounds!r}, so "
            "draw the sample with coordinates='ambient'."
        )


def flat_points(net: ShallowNet, X: ArrayLike) -> FloatArray:
    """Return points in double precision, one in each row; images are flattened."""
    try:
        array = np.asarray(checks.unmasked("X", X))
    except InputError:
        raise
    except (RuntimeError, ValueError) as error:  # a tensor that requires a gradient, ragged lists
        raise InputError(f"X must be an array of numbers; {str(error).rstrip('.')}.") from None
    if array.ndim > 2:
        array = array.reshape(len(array), -1)
    return checks.matrix("X", array, columns=net.dim).astype(np.float64)


def _own_labels(net: ShallowNet, y: ArrayLike, points: int) -> NDArray[Any]:
    """Return labels of points, each of which the network knows."""
    # of a list of numbers and text NumPy would make text
    mixed = net.labels.dtype == object
    labels = np.asarray(checks.unmasked("y", y), dtype=object if mixed else None)
    if labels.shape != (points,):
        raise InputError(
            f"y must hold one label for each of the {points} points; got the shape {labels.shape}."
        )
    known = checks.contained(labels, net.labels)
    if not known.all():
        choices = ", ".join(repr(label) for label in np.unique(net.labels).tolist()[:12])
        raise InputError(
            f"y must hold labels of the model ({choices}); got {labels[~known].tolist()[0]!r}."
        )
    return labels


def _sides(net: ShallowNet, label: Any, target: Any) -> tuple[BoolArray, BoolArray]:
    """Return the outputs that keep a decision and those that turn it."""
    if target is None:
        own = net.labels == label
    elif np.ndim(target):
        raise InputError(f"target must be one label, the same for all points; got {target!r}.")
    elif not (net.labels == target).any():
        raise InputError(f"target must be a label of the model; got {target!r}.")
    else:
        own = net.labels != target
    return own, ~own


def _bounds(bounds: tuple[float, float] | None, points: FloatArray) -> tuple[float, float] | None:
    """Return bounds that hold every point."""
    if bounds is None:
        return None
    pair = checks.vector("bounds", bounds, length=2)
    low, high = float(pair[0]), float(pair[1])
    if low >= high or points.min() < low or points.max() > high:
        raise InputError(
            "bounds must be two numbers that hold every coordinate of X, which goes from "
            f"{points.min():g} to {points.max():g}; got {bounds!r}."
        )
    return low, high
