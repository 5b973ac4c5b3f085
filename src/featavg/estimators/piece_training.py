"""Training of affine pieces on their own certified radius."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csc_array
from scipy.special import expit

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.estimators.pieces import (
    PieceHead,
    SortedPairs,
    nearest_pairs,
    prototype_biases,
    quick_piece_distances,
)

# The loss is the logistic loss of _SLOPE (r - m)/m: smaller is flatter.
_SLOPE = 4.0
# Rates of Adam: relative to the norm of the pieces, and absolute for the rotation of the features.
_RATE = 0.01
# Points are moved at random: at most by these shares of the margin, along a direction (standard
# deviation) and in all.
_JITTER, _ALL_JITTER = 0.2, 1.5
_UNIFORM = np.sqrt(12)  # the width of a uniform distribution, in standard deviations
_WARM_UP = 30
_MOMENTUM, _SQUARES = 0.9, 0.99
# Gradients by pieces are computed with sparse matrices from so many pieces x points x coordinates.
_SPARSE_FROM = 6_000_000


@dataclass(frozen=True, eq=False)
class Examples:
    """Points to train on.

    Attributes
    ----------
    x : array of shape (points, coordinates)
        Points, in the precision in which to train.
    classes : array of shape (points,)
        The class of each point, from 0.
    weights : array of shape (points,)
        How much each point counts; their mean is 1.
    allowed : array of shape (points, pieces), optional
        Which of the own pieces may defend a point: those of its subclass, where it is known.
    """

    x: FloatArray
    classes: IntArray
    weights: FloatArray
    allowed: BoolArray | None = None

    def some(self, which: IntArray) -> Examples:
        """Return some of the points."""
        allowed = None if self.allowed is None else self.allowed[which]
        return Examples(self.x[which], self.classes[which], self.weights[which], allowed)

    def moved(self, noise: FloatArray) -> Examples:
        """Return the points with noise added to their coordinates."""
        return replace(self, x=self.x + noise)


@dataclass(frozen=True)
class Schedule:
    """How long to train, and on how many points at a time."""

    first_steps: int = 1500
    next_steps: int = 500
    batch: int = 256

    def shorter(self, factor: int) -> Schedule:
        """Return a schedule of fewer steps."""
        first, following = max(1, self.first_steps // factor), max(1, self.next_steps // factor)
        return Schedule(first, following, self.batch)


def margin_path(
    start: PieceHead,
    examples: Examples,
    margins: Sequence[float],
    schedule: Schedule,
    *,
    prototypes: bool = False,
    rng: np.random.Generator,
) -> Iterator[PieceHead]:
    """Train for each margin in turn, from where the one before has ended; yield each result.

    Large margins come first: they are the smoother problems. With `prototypes` the biases remain
    those of nearest prototypes, as they must be at the start.
    """
    head, batch = start, schedule.batch
    for number, margin in enumerate(margins):
        steps = schedule.next_steps if number else schedule.first_steps
        head = train(
            head, examples, margin, steps=steps, batch=batch, prototypes=prototypes, rng=rng
        )
        yield head


def train(
    head: PieceHead,
    examples: Examples,
    margin: float,
    *,
    steps: int,
    batch: int,
    prototypes: bool = False,
    rng: np.random.Generator,
) -> PieceHead:
    r"""Minimise the mean of :math:`\log(1 + e^{s (m - r)/m})` over the points by Adam.

    r is the certified radius of a point (negative where its class is wrong), m the margin and
    s = 4. In the precision of the points, with mini-batches and a rate that falls linearly to 0.
    In mini-batches each point is moved at random, by m/5 along every direction or by 1.5 m in all,
    whichever is less, so that less is learned by heart. Where a batch holds all points nothing is
    random, and a point of weight 2 counts as two points. With `prototypes` the biases are functions
    of the weights, see `prototype_biases`.
    """
    pieces = head.astype(examples.x.dtype)
    size = float(np.linalg.norm(pieces.weights, axis=1).mean()) or 1.0
    parameters = [pieces.weights.copy(), pieces.biases.copy()]
    rates = [_RATE * size / np.sqrt(pieces.weights.shape[1]), _RATE * size / 2]
    if pieces.features is not None:
        parameters += [pieces.features.weights.copy(), pieces.features.biases.copy()]
        rates += [_RATE, 0.3 * _RATE * size]
    adam = _Adam(parameters, rates)
    deviation = margin * min(_JITTER, _ALL_JITTER / np.sqrt(examples.x.shape[1]))
    for step, at in enumerate(_batches(len(examples.x), batch, steps, rng)):
        pieces = _with(pieces, parameters)
        some, noise = examples.some(at), None
        if batch < len(examples.x):
            noise = uniform_noise((len(at), _moved_along(pieces)), deviation, rng)
        gradients = radius_gradients(pieces, some, margin, noise, prototypes=prototypes)
        adam.step(gradients, min(1.0, (step + 1) / _WARM_UP) * (1 - step / steps))
        if prototypes:
            parameters[1][:] = prototype_biases(parameters[0])
        if pieces.features is not None:
            parameters[2][:] = nearly_orthonormal(parameters[2])
    return _with_exact_rotation(replace(_with(pieces, parameters), sharpness=head.sharpness))


def _moved_along(head: PieceHead) -> int:
    """Return along how many directions points are moved.

    Where the features are fewer than the coordinates these are the rows of the rotation, for moves
    along others would not change a feature.
    """
    if head.features is None:
        return head.weights.shape[1]
    return min(head.features.weights.shape)


def uniform_noise(shape: tuple[int, int], deviation: float, rng: np.random.Generator) -> FloatArray:
    """Return noise of this standard deviation.

    It is uniform, which takes a third of the time of Gaussian noise.
    """
    noise = rng.random(shape, dtype=np.float32)
    noise -= np.float32(0.5)
    noise *= np.float32(deviation * _UNIFORM)
    return noise


def radius_gradients(
    head: PieceHead,
    examples: Examples,
    margin: float,
    noise: FloatArray | None = None,
    *,
    prototypes: bool = False,
) -> list[FloatArray]:
    r"""Return the derivatives of the mean loss by weights, biases and parameters of the features.

    With :math:`r = (z_p - z_q)/\|w_p - w_q\|` and :math:`a = -\ell'(r)/\|w_p - w_q\|` of a point,
    the step of descent pulls :math:`w_p` by :math:`a (\phi(x) - r u)` and :math:`w_q` by its
    negative, u being the unit vector along :math:`w_p - w_q`. Summed over points the second parts
    are :math:`L W` with the Laplacian L of the graph whose edges are the pairs. The biases of
    `prototypes` are :math:`-\|w\|^2/2`: what would pull them pulls the weights, and their own
    derivatives are 0.

    The points are moved by `noise`: in their coordinates, or in those after the rotation where
    these are fewer.
    """
    features, weights = head.features, head.weights
    within = noise is not None and features is not None and noise.shape[1] < examples.x.shape[1]
    if noise is not None and not within:
        examples = examples.moved(noise)
    inputs = x = examples.x
    if features is not None:
        rotated = features.rotate(x)
        moved = rotated + noise if noise is not None and within else rotated
        inputs = features.sort(moved)
    between = quick_piece_distances(weights)
    radii, p, q = nearest_pairs(
        inputs @ weights.T + head.biases,
        examples.classes,
        head.class_of,
        between,
        allowed=examples.allowed,
    )
    points, far = len(radii), between[p, q]
    slopes = _SLOPE / margin * expit(_SLOPE * (margin - radii) / margin)
    pulls = (slopes * examples.weights / points / far).astype(weights.dtype)
    shrinks = (pulls * radii / far).astype(weights.dtype)
    gradients = _piece_gradients(weights, inputs, p, q, pulls, shrinks)
    if prototypes:
        gradients[0] -= gradients[1][:, None] * weights
        gradients[1][:] = 0
    if features is not None:
        before = features.unsort(moved, pulls[:, None] * (weights[q] - weights[p]))
        gradients += _feature_gradients(features, x, rotated, before)
    return gradients


def _feature_gradients(
    features: SortedPairs, x: FloatArray, rotated: FloatArray, before: FloatArray
) -> list[FloatArray]:
    r"""Return the derivatives by Q and c, from those by the values t = Q x + c of each point.

    That by Q is G = B^T x, without its part S Q that would stretch or shrink the rotation, where S
    is the symmetric part of G Q^T = B^T (t - c), which is not computed in all coordinates.
    """
    gradient, biases = before.T @ x, before.sum(axis=0)
    rotation = features.weights
    if len(rotation) > rotation.shape[1]:
        inner = rotation.T @ gradient
        return [gradient - rotation @ ((inner + inner.T) / 2), biases]
    inner = before.T @ (rotated - features.biases)
    gradient -= (inner + inner.T) / 2 @ rotation
    return [gradient, biases]


def _piece_gradients(
    weights: FloatArray,
    inputs: FloatArray,
    p: IntArray,
    q: IntArray,
    pulls: FloatArray,
    shrinks: FloatArray,
) -> list[FloatArray]:
    """Return the derivatives by weights and biases, from the pulls and shrinks of each point.

    Sparse matrices do no more than they must, but take half a millisecond to be made: for few
    pieces dense ones are ten times as fast.
    """
    pieces, row = len(weights), np.arange(len(p))
    if pieces * inputs.size > _SPARSE_FROM:
        signs = _signs(p, q, pieces, np.ones_like(pulls))
        graph = _signs(p, q, pieces, shrinks) @ signs.T
        return [graph @ weights - _signs(p, q, pieces, pulls) @ inputs, -(signs @ pulls)]
    pulled = np.zeros((pieces, len(p)), dtype=pulls.dtype)
    pulled[p, row], pulled[q, row] = pulls, -pulls
    edges = np.bincount(p * pieces + q, shrinks, pieces**2).reshape(pieces, pieces)
    edges = (edges + edges.T).astype(weights.dtype)
    laplacian = np.diag(edges.sum(axis=1)) - edges
    return [laplacian @ weights - pulled @ inputs, -pulled.sum(axis=1)]


def _signs(p: IntArray, q: IntArray, pieces: int, sizes: FloatArray) -> Any:
    """Return the sparse matrix with `sizes` at the piece p of each point, and minus them at q."""
    entries = np.column_stack([sizes, -sizes]).ravel()
    rows, starts = np.column_stack([p, q]).ravel(), np.arange(0, 2 * len(p) + 1, 2)
    return csc_array((entries, rows, starts), shape=(pieces, len(p)))


def nearly_orthonormal(rotation: FloatArray) -> FloatArray:
    """Return the matrix after a step of Newton's method towards the nearest orthonormal one."""
    if len(rotation) > rotation.shape[1]:
        return nearly_orthonormal(rotation.T).T
    nearer: FloatArray = 1.5 * rotation - 0.5 * (rotation @ rotation.T) @ rotation
    return nearer


def _with_exact_rotation(head: PieceHead) -> PieceHead:
    """Return the head in double precision, with the orthonormal matrix nearest to its rotation."""
    head = head.astype(np.float64)
    if head.features is None:
        return head
    left, _, right = np.linalg.svd(head.features.weights, full_matrices=False)
    return replace(head, features=SortedPairs(left @ right, head.features.biases))


def _with(head: PieceHead, parameters: list[FloatArray]) -> PieceHead:
    features = SortedPairs(*parameters[2:]) if len(parameters) > 2 else None
    return replace(head, weights=parameters[0], biases=parameters[1], features=features)


def _batches(points: int, batch: int, steps: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield the points of each step: all of them in random order, again and again."""
    if batch >= points:
        yield from [np.arange(points)] * steps
        return
    order, at = rng.permutation(points), 0
    for _ in range(steps):
        if at + batch > points:
            order, at = rng.permutation(points), 0
        yield order[at : at + batch]
        at += batch


class _Adam:
    """Adam (Kingma and Ba, 2015), in place, with a rate for each array of parameters."""

    def __init__(self, parameters: list[FloatArray], rates: list[float]) -> None:
        self._parameters, self._rates = parameters, rates
        self._means = [np.zeros_like(values) for values in parameters]
        self._squares = [np.zeros_like(values) for values in parameters]
        self._spare = [np.empty_like(values) for values in parameters]
        self._steps = 0

    def step(self, gradients: list[FloatArray], factor: float) -> None:
        self._steps += 1
        unbias = np.sqrt(1 - _SQUARES**self._steps) / (1 - _MOMENTUM**self._steps)
        for values, rate, mean, square, spare, gradient in zip(
            self._parameters,
            self._rates,
            self._means,
            self._squares,
            self._spare,
            gradients,
            strict=True,
        ):
            number = values.dtype.type
            np.subtract(gradient, mean, out=spare)
            spare *= number(1 - _MOMENTUM)
            mean += spare
            np.multiply(gradient, gradient, out=spare)
            spare -= square
            spare *= number(1 - _SQUARES)
            square += spare
            np.sqrt(square, out=spare)
            spare += number(1e-20)
            np.divide(mean, spare, out=spare)
            spare *= number(rate * factor * unbias)
            values -= spare
