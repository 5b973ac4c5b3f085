"""Attacks on two-layer networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.robustness.norm import L2, Norm, only_l2
from featavg.robustness.view import AttackView

OBJECTIVES = ("readout", "cross-entropy")


@dataclass(frozen=True, eq=False, repr=False)
class AttackResult:
    """What an attack of one radius found.

    Attributes
    ----------
    radius : float
        The largest norm it was allowed.
    success : bool array of shape (points,)
        Where the binary decision is, or was made, wrong.
    perturbations : array of shape (points, coordinates)
        What makes it wrong; zero where the attack failed, and where nothing was needed.
    norm : str
        The norm of perturbations.
    """

    radius: float
    success: BoolArray
    perturbations: FloatArray
    norm: str = "l2"

    def __repr__(self) -> str:
        return (
            f"AttackResult(radius {self.radius:g}, "
            f"{int(self.success.sum())} of {len(self.success)} points broken)"
        )


def pgd(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike,
    *,
    radius: float,
    rng: np.random.Generator,
    steps: int = 40,
    restarts: int = 1,
    objective: str = "readout",
    fine_labels: ArrayLike | None = None,
    norm: str | Norm = "l2",
) -> AttackResult:
    r"""Attack by projected gradient descent, as in Madry et al.

    Paper: Section 6.2.

    From a start that is uniform in the ball, `steps` steps of length 2.5·radius/steps along the
    normalised gradient, each followed by a projection onto the ball. The gradient is closed-form.
    It is computed in the span of the weights, where it lies, which gives the same iterates at a
    cost that hardly depends on the dimension: what the random start has outside of the span only
    uses up norm, and is kept as one number.

    Differs from the paper: a point counts as broken if any iterate breaks it, not only the last.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network to attack.
    x, y : arrays of shape (points, coordinates) and (points,)
        The points and their labels in {-1, +1}.
    radius : float
        The largest norm of a perturbation.
    rng : numpy.random.Generator
        The source of the random starts.
    steps, restarts : int
        Steps of each run, and how many runs from new starts.
    objective : {"readout", "cross-entropy"}
        What the attack lowers: the binary decision itself, or (as the paper's attack on networks
        of many classes does) the network's own log-probability of the right class. Success is
        always judged by the binary decision.
    fine_labels : array of shape (points,), optional
        The right classes, for "cross-entropy"; what the network predicts by default.
    norm : {"l2"}
        The norm of perturbations.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> attack = pgd(net, [[3.0, 1.0]], [1], radius=1.5, rng=np.random.default_rng(0))
    >>> attack                        # the boundary x1 = x2 is at the distance sqrt(2) = 1.41
    AttackResult(radius 1.5, 1 of 1 points broken)
    """
    points, labels = check_points(net, x, y)
    radius = checks.scale("radius", radius, zero=True)
    size = only_l2(norm, "pgd")
    attacker = Pgd(net, points, labels, steps, restarts, objective, fine_labels)
    success, coordinates = attacker.run(radius, checks.generator(rng))
    return AttackResult(radius, success, attacker.view.span.embed(coordinates), size.name)


class Pgd:
    """Projected gradient descent on fixed points, ready to be run at any radius."""

    def __init__(
        self,
        net: TwoLayerNet,
        x: FloatArray,
        y: IntArray,
        steps: int,
        restarts: int,
        objective: str,
        fine_labels: ArrayLike | None,
    ) -> None:
        self._steps = checks.count("steps", steps)
        self._restarts = checks.count("restarts", restarts)
        self._objective = checks.choice("objective", objective, OBJECTIVES)
        self._dim = x.shape[1]
        # as it is: the cross-entropy depends on the scale of the network
        self.view = AttackView.of(net, x, y, scaled=False)
        self._targets = self._fine_targets(fine_labels)

    def run(
        self, radius: float, rng: np.random.Generator, unbroken: BoolArray | None = None
    ) -> tuple[BoolArray, FloatArray]:
        """Return where the attack succeeds and the perturbations, shape (span, points).

        With `unbroken`, only those points are attacked; the others count as failures.
        """
        points, inside = len(self.view.y), self.view.span.weights.shape[1]
        success = np.zeros(points, dtype=bool)
        found = np.zeros((inside, points))
        wrong = self.view.turned(found)
        if unbroken is None:
            unbroken = np.ones(points, dtype=bool)
        success[wrong & unbroken] = True
        left = np.flatnonzero(unbroken & ~wrong)
        for _ in range(self._restarts if radius > 0 else 0):
            if not len(left):
                break
            broken, coordinates = self._descend(radius, left, rng)
            success[left[broken]] = True
            found[:, left[broken]] = coordinates[:, broken]
            left = left[~broken]
        return success, found

    def _descend(
        self, radius: float, which: IntArray, rng: np.random.Generator
    ) -> tuple[BoolArray, FloatArray]:
        """Run once from a random start on the points `which`."""
        view, targets = self.view.subset(which), self._targets[which]
        step_length = 2.5 * radius / self._steps
        u, outside = self._start(radius, len(which), rng)
        broken = np.zeros(len(which), dtype=bool)
        best = np.zeros_like(u)
        for step in range(self._steps + 1):
            z = view.preactivations(u)
            outputs = view.outputs(z)
            margin = view.y * view.net.decision(outputs)
            new = view.turned_at(z, margin, u) & ~broken
            best[:, new] = u[:, new]
            broken |= new
            if step == self._steps or broken.all():
                break
            if self._objective == "cross-entropy":
                lowered = view.net.default_loss.directions(outputs, targets)
            else:
                lowered = view.y * view.net.decision_gradient(outputs)
            u -= step_length * L2().steepest(view.gradient(lowered, z))
            norm = np.hypot(np.linalg.norm(u, axis=0), outside)
            shrink = np.minimum(1, radius / norm)
            u *= shrink
            outside *= shrink
        return broken, best

    def _start(
        self, radius: float, points: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw uniformly from the ball: the part in the span, and the norm of the rest."""
        inside = self.view.span.weights.shape[1]
        u = rng.standard_normal((inside, points))
        rest = self._dim - inside
        outside = np.sqrt(rng.chisquare(rest, points)) if rest else np.zeros(points)
        length = radius * rng.random(points) ** (1 / self._dim)
        factor = length / np.hypot(np.linalg.norm(u, axis=0), outside)
        return u * factor, outside * factor

    def _fine_targets(self, fine_labels: ArrayLike | None) -> IntArray:
        y, outputs = self.view.y, self.view.outputs(self.view.z)
        if len(outputs) == 1:  # a binary network: its cross-entropy is the logistic loss
            return y
        if fine_labels is None:
            return np.asarray(outputs.argmax(axis=0))
        return checks.indices("fine_labels", fine_labels, length=len(y), below=len(outputs))


def averaged_direction(sample: Sample) -> FloatArray:
    r"""Return the unit vector along :math:`\sum_{J_+}\mu_j - \sum_{J_-}\mu_j`.

    Paper: Remark 4.2. Moving a positive point against it, or a negative one along it, is the
    attack on everything that averages.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> train = MultiCluster(clusters=4, dim=9).sample(5, rng=np.random.default_rng(0))
    >>> (train.centers @ averaged_direction(train)).round(6)
    array([ 1.5,  1.5, -1.5, -1.5])
    """
    direction = sample.law.signs @ sample.centers.astype(np.float64)
    norm = np.linalg.norm(direction)
    if norm <= 1e-12 * np.linalg.norm(sample.centers):
        raise InputError(
            "the averaged direction is zero because the positive and the negative centres have "
            "the same sum."
        )
    return direction / norm


def direction_attack(
    net: TwoLayerNet,
    x: ArrayLike,
    y: ArrayLike,
    *,
    radius: float,
    direction: ArrayLike,
    norm: str | Norm = "l2",
) -> AttackResult:
    """Attack every point with the same direction: the perturbation -y·radius·direction.

    Paper: Remark 4.2, with `averaged_direction`. The direction is scaled to norm 1.

    Examples
    --------
    >>> from featavg import BinaryNet
    >>> net = BinaryNet(weights=[[1.0, 0.0], [0.0, 1.0]])
    >>> direction_attack(net, [[3.0, 1.0]], [1], radius=1.5, direction=[1.0, -1.0])
    AttackResult(radius 1.5, 1 of 1 points broken)
    """
    points, labels = check_points(net, x, y)
    radius = checks.scale("radius", radius, zero=True)
    size = only_l2(norm, "direction_attack")
    unit = unit_direction(direction, net.dim)
    wrong = net.predict(points) != labels
    perturbations = -radius * labels[:, None] * unit
    broken = net.predict(points + perturbations) != labels
    perturbations[wrong | ~broken] = 0
    return AttackResult(radius, wrong | broken, perturbations, size.name)


def check_points(net: TwoLayerNet, x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Return points and labels that fit each other and the network."""
    if not isinstance(net, TwoLayerNet):
        raise InputError(f"net must be a BinaryNet or a MultiClassNet; got {net!r}.")
    points = checks.matrix("x", x, columns=net.dim)
    return points, checks.signs("y", y, length=len(points))


def unit_direction(direction: ArrayLike, dim: int) -> FloatArray:
    """Return a direction scaled to norm 1."""
    vector = checks.vector("direction", direction, length=dim).astype(np.float64)
    norm = np.linalg.norm(vector)
    if norm == 0:
        raise InputError("direction must not be zero.")
    return vector / norm
