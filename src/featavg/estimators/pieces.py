"""Classifiers made of affine pieces: their decision and their certified radius in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import expit, softmax

from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.estimators.scaling import Scaling
from featavg.networks.shallow import ShallowNet
from featavg.robustness.certify import exact_radii
from featavg.robustness.radii import EXACT, Radii

# How far beyond a boundary a perturbation is taken, so that it is on the other side of it.
_BEYOND = 1e-8
# How many values of pairs of pieces are held at a time: few enough for the cache.
_CHUNK = 1 << 18
# More opposing pieces than the first number are looked at one by one, those that may be nearest
# first; after so many rounds, or where so few pairs are left, all of them at once.
_FEW, _ROUNDS, _FEW_PAIRS = 8, 4, 20_000


@dataclass(frozen=True, eq=False)
class SortedPairs:
    r"""The map :math:`\phi(x) = \mathrm{sort}(Q x + c)` that sorts each pair of coordinates.

    Paper: none, an extension; the activation is the GroupSort of Anil, Lucas and Grosse (2019).

    Coordinate j is paired with coordinate j + h/2, and the larger of both comes first. Sorting does
    not increase distances, so :math:`\|\phi(x) - \phi(x')\| \le \|Q\|\,\|x - x'\|`; after training
    the rows of Q are orthonormal (or its columns, if it has fewer of them), and its norm is 1.

    Attributes
    ----------
    weights : array of shape (h, coordinates)
        Q.
    biases : array of shape (h,)
        c.
    """

    weights: FloatArray
    biases: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Return the features of points, shape (points, h)."""
        return self.sort(self.rotate(x))

    def rotate(self, x: FloatArray) -> FloatArray:
        """Return Q x + c of points, shape (points, h)."""
        rotated: FloatArray = x @ self.weights.T + self.biases
        return rotated

    def sort(self, rotated: FloatArray) -> FloatArray:
        """Return the features, given Q x + c."""
        half = rotated.shape[1] // 2
        features = np.empty_like(rotated)
        np.maximum(rotated[:, :half], rotated[:, half:], out=features[:, :half])
        np.minimum(rotated[:, :half], rotated[:, half:], out=features[:, half:])
        return features

    def unsort(self, rotated: FloatArray, gradients: FloatArray) -> FloatArray:
        """Return gradients by Q x + c, given Q x + c and gradients by the features."""
        half = rotated.shape[1] // 2
        first, second = gradients[:, :half], gradients[:, half:]
        # where a pair was exchanged; a product takes half of the time of a choice
        exchanged = (second - first) * (rotated[:, :half] < rotated[:, half:])
        return np.concatenate([first + exchanged, second - exchanged], axis=1)

    def lipschitz(self) -> float:
        """Return an upper bound of the norm of Q."""
        return float(np.linalg.norm(self.weights, 2)) * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class PieceHead:
    r"""A classifier that gives a point to the class of its largest affine piece.

    Paper: none, an extension.

    With pieces :math:`z_p(x) = w_p \cdot \phi(x) + b_p`, a point is of class c where the largest
    piece is one of c. A point stays in its class as long as each piece q of another class is below
    some own piece p, and :math:`z_p - z_q` changes by at most :math:`\|w_p - w_q\|` along a unit of
    the features, so

    .. math:: r(x) = \min_q \max_p \frac{z_p(x) - z_q(x)}{\|w_p - w_q\|}

    is a certified radius in the space of the features, and :math:`r/\|Q\|` one of the points. It is
    negative where the class is wrong. Without features it is exact wherever the nearest point at
    which q overtakes p is one at which q overtakes all own pieces.

    Attributes
    ----------
    weights : array of shape (pieces, features)
        The w; the pieces of the first class come first.
    biases : array of shape (pieces,)
        The b.
    class_of : array of shape (pieces,)
        The class of each piece, from 0, in ascending order.
    features : SortedPairs, optional
        :math:`\phi`; without it the pieces are functions of the point itself.
    sharpness : float
        The factor of the values in `probabilities`, fitted to held-out points.
    """

    weights: FloatArray
    biases: FloatArray
    class_of: IntArray
    features: SortedPairs | None = None
    sharpness: float = 1.0

    readout = "argmax"

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.class_of[-1]) + 1

    def after(self, scaling: Scaling) -> PieceHead:
        """Return the same classifier for points that are not scaled."""
        factor, shift = scaling.factor, scaling.shift
        if self.features is None:
            weights = self.weights * factor
            return replace(self, weights=weights, biases=self.biases - weights @ shift)
        rows = self.features.weights * factor
        features = SortedPairs(rows, self.features.biases - rows @ shift)
        return replace(self, features=features)

    def after_projection(self, axes: FloatArray) -> PieceHead:
        """Return the same classifier of points x that it was given as `x @ axes.T`."""
        if self.features is None:
            return replace(self, weights=self.weights @ axes)
        features = SortedPairs(self.features.weights @ axes, self.features.biases)
        return replace(self, features=features)

    def astype(self, dtype: Any) -> PieceHead:
        """Return the head with parameters of another precision."""
        features = self.features
        if features is not None:
            features = SortedPairs(features.weights.astype(dtype), features.biases.astype(dtype))
        weights, biases = self.weights.astype(dtype), self.biases.astype(dtype)
        return replace(self, weights=weights, biases=biases, features=features)

    def inputs(self, x: FloatArray) -> FloatArray:
        """Return what the pieces are functions of: features, or the points themselves."""
        return x if self.features is None else self.features.apply(x)

    def piece_values(self, x: FloatArray) -> FloatArray:
        """Return z of all pieces, shape (points, pieces)."""
        return self.inputs(x) @ self.weights.T + self.biases

    def class_values(self, x: FloatArray) -> FloatArray:
        """Return the largest piece of each class, shape (points, classes)."""
        first = np.flatnonzero(np.diff(self.class_of, prepend=-1))
        values: FloatArray = np.maximum.reduceat(self.piece_values(x), first, axis=1)
        return values

    def decision(self, x: FloatArray) -> FloatArray:
        """Return the second value minus the first of two classes, or the values of all classes."""
        values = self.class_values(x)
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict(self, x: FloatArray) -> IntArray:
        """Return the class of each point; of equal values the first class decides."""
        return self.class_values(x).argmax(axis=1)

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Return the softmax of the values, times `sharpness`, shape (points, classes)."""
        decision = self.sharpness * self.decision(x)
        if decision.ndim == 1:
            return np.column_stack([expit(-decision), expit(decision)])
        return softmax(decision, axis=1)

    def signed_radii(self, x: FloatArray, classes: IntArray) -> FloatArray:
        """Return r of each point and its class, in the space of the features."""
        return self.nearest_pairs(x, classes)[0]

    def nearest_pairs(
        self, x: FloatArray, classes: IntArray, *, roundoff: FloatArray | None = None
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Return r of each point, and the own and the opposing piece that attain it.

        `roundoff`, shape (points,), is subtracted from each difference of two pieces.
        """
        values, between = self.piece_values(x), piece_distances(self.weights)
        return nearest_pairs(values, classes, self.class_of, between, roundoff=roundoff)

    def lower_radii(self, x: FloatArray, classes: IntArray) -> FloatArray:
        """Return certified radii in closed form, with rounding allowed for; 0 where wrong."""
        radii, _, _ = self.nearest_pairs(x, classes, roundoff=self._roundoff(x))
        if self.features is not None:
            radii = radii / self.features.lipschitz()
        radii = np.maximum(radii * (1 - 1e-12), 0)
        return np.where(self.predict(x) == classes, radii, 0)

    def _roundoff(self, x: FloatArray) -> FloatArray:
        """Return what the difference of two pieces can be off by at each point."""
        largest = np.linalg.norm(self.weights, axis=1).max()
        size, terms = np.linalg.norm(x, axis=1), x.shape[1]
        if self.features is not None:
            size = size * self.features.lipschitz() + np.linalg.norm(self.features.biases)
            terms += self.weights.shape[1]
        size = size * largest + np.abs(self.biases).max()
        rounded: FloatArray = 4 * (terms + 4) * np.finfo(np.float64).eps * size
        return rounded

    def radii(self, x: FloatArray, classes: IntArray, **search: Any) -> Radii:
        """Return radii: in closed form where that is exact, elsewhere by search.

        The closed form is exact where a perturbation of its length turns the decision. `search` has
        options of `featavg.exact_radii`; with ``certificates=True`` all radii are searched, and
        have proofs. The closed form is for L2 without bounds, so others are searched as well.
        """
        if search.get("certificates") or search.keys() & {"norm", "bounds", "target"}:
            return exact_radii(self.to_shallow(), x, classes, **search)
        lower = self.lower_radii(x, classes)
        perturbations = self._shortest_turns(x, classes, lower)
        upper = np.linalg.norm(perturbations, axis=1)
        wrong = self.predict(x) != classes
        turned = self.predict(x + perturbations) != classes
        turns = np.ones(len(x), dtype=bool)
        left = np.flatnonzero(~wrong & ~(turned & (upper - lower <= EXACT * upper)))
        if len(left):
            options: dict[str, Any] = {"certificates": False, "jobs": 1} | search
            found = exact_radii(self.to_shallow(), x[left], classes[left], **options)
            lower[left] = np.maximum(lower[left], found.lower)
            upper[left], perturbations[left] = found.upper, found.perturbations
            turns[left] = found.turns
        return Radii(lower, upper, perturbations, "l2", turns)

    def _shortest_turns(self, x: FloatArray, classes: IntArray, lower: FloatArray) -> FloatArray:
        """Return steps across the boundary between the two pieces that attain r; 0 where wrong."""
        _, p, q = self.nearest_pairs(x, classes)
        downhill = self.weights[q] - self.weights[p]
        if self.features is not None:
            rotated = self.features.rotate(x)
            downhill = self.features.unsort(rotated, downhill) @ self.features.weights
        norms = np.linalg.norm(downhill, axis=1, keepdims=True)
        unit = downhill / np.maximum(norms, np.finfo(np.float64).tiny)
        beyond: FloatArray = unit * (lower * (1 + _BEYOND))[:, None]
        return beyond

    def to_shallow(self, labels: ArrayLike | None = None) -> ShallowNet:
        r"""Return the classifier as one network whose largest output decides.

        A sorted pair (a, b) is :math:`(a + b)/2 \pm |a - b|/2`, and :math:`|t| = 2\,
        \mathrm{relu}(t) - t`, so there is one neuron for each pair.
        """
        names = np.arange(self.classes) if labels is None else np.asarray(labels)
        of_pieces = names[self.class_of]
        if self.features is None:
            none = np.zeros((0, self.weights.shape[1]))
            outer = np.zeros((len(self.weights), 0))
            return ShallowNet(
                none, none[:, 0], outer, self.biases, linear=self.weights, labels=of_pieces
            )
        first, second = np.vsplit(self.features.weights, 2)
        first_bias, second_bias = np.split(self.features.biases, 2)
        half, half_bias = (first - second) / 2, (first_bias - second_bias) / 2
        mean, mean_bias = (first + second) / 2, (first_bias + second_bias) / 2
        larger, smaller = np.hsplit(self.weights, 2)
        total, contrast = larger + smaller, larger - smaller
        return ShallowNet(
            half,
            half_bias,
            2 * contrast,
            self.biases + total @ mean_bias - contrast @ half_bias,
            linear=total @ mean - contrast @ half,
            labels=of_pieces,
        )


def nearest_pairs(
    values: FloatArray,
    classes: IntArray,
    class_of: IntArray,
    between: FloatArray,
    *,
    allowed: BoolArray | None = None,
    roundoff: FloatArray | None = None,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return r of each point, and the own and the opposing piece that attain it.

    Parameters
    ----------
    values : array of shape (points, pieces)
        z of all pieces.
    classes, class_of : arrays of shape (points,) and (pieces,)
        The classes of points and of pieces.
    between : array of shape (pieces, pieces)
        The norms of differences of pieces.
    allowed : array of shape (points, pieces), optional
        Which own pieces count; all of them by default.
    roundoff : array of shape (points,), optional
        What is subtracted from each difference of two pieces.
    """
    radii = np.empty(len(values), dtype=values.dtype)
    best, worst = (np.empty(len(values), dtype=np.int64) for _ in range(2))
    for c in np.unique(classes):
        own, other = np.flatnonzero(class_of == c), np.flatnonzero(class_of != c)
        scale = 1 / between[own][:, other]
        members = np.flatnonzero(classes == c)
        block = max(1, _CHUNK // (len(own) * min(len(other), _FEW)))
        for at in (members[i : i + block] for i in range(0, len(members), block)):
            some = values[at]
            mine = some[:, own]
            if allowed is not None:
                mine = np.where(allowed[at][:, own], mine, -np.inf)
            if roundoff is not None:
                mine = mine - roundoff[at, None]
            radii[at], p, q = _nearest(mine, some[:, other], scale)
            best[at], worst[at] = own[p], other[q]
    return radii, best, worst


def _nearest(
    mine: FloatArray, theirs: FloatArray, scale: FloatArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the smallest over q of the largest over p of (mine_p - theirs_q) scale_pq, and p, q.

    The largest of mine gives a lower bound for each q. So the q with the smallest bound is looked
    at first, and then the next ones, as long as their bounds are below what was found.
    """
    if theirs.shape[1] <= _FEW:
        return _nearest_of(mine, theirs, scale.T)
    row, by_q = np.arange(len(mine)), np.ascontiguousarray(scale.T)
    first = mine.argmax(axis=1)
    bounds = (mine[row, first, None] - theirs) * scale[first]
    q = bounds.argmin(axis=1)
    radii, p = _largest(mine, theirs[row, q], by_q[q])
    bounds[row, q] = np.inf
    left = np.flatnonzero(radii > bounds.min(axis=1))
    for _ in range(_ROUNDS):
        if len(left) * scale.size <= _FEW_PAIRS:
            break
        following = bounds[left].argmin(axis=1)
        found, which = _largest(mine[left], theirs[left, following], by_q[following])
        is_nearer = found < radii[left]
        nearer = left[is_nearer]
        radii[nearer], p[nearer], q[nearer] = (
            values[is_nearer] for values in (found, which, following)
        )
        bounds[left, following] = np.inf
        left = left[radii[left] > bounds[left].min(axis=1)]
    block = max(1, _CHUNK // scale.size)
    for some in (left[i : i + block] for i in range(0, len(left), block)):
        radii[some], p[some], q[some] = _nearest_of(mine[some], theirs[some], by_q)
    return radii, p, q


def _largest(
    mine: FloatArray, theirs: FloatArray, scale: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return the largest over p of (mine_p - theirs) scale_p of each point, and p."""
    ahead = mine - theirs[:, None]
    ahead *= scale
    p = ahead.argmax(axis=1)
    return ahead[np.arange(len(p)), p], p


def _nearest_of(
    mine: FloatArray, theirs: FloatArray, scale: FloatArray
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the same by comparing all p and q; `scale` has the shape (q, p)."""
    row = np.arange(len(mine))
    ahead = mine[:, None, :] - theirs[:, :, None]
    ahead *= scale
    q = ahead.max(axis=2).argmin(axis=1)
    nearest = ahead[row, q]
    p = nearest.argmax(axis=1)
    return nearest[row, p], p, q


def prototype_biases(prototypes: FloatArray) -> FloatArray:
    r"""Return the biases with which the largest piece is that of the nearest prototype.

    A point is nearest to the prototype w with the largest :math:`w \cdot x - \|w\|^2/2`.
    """
    biases: FloatArray = -np.square(prototypes).sum(axis=1) / 2
    return biases


def piece_distances(weights: FloatArray) -> FloatArray:
    """Return the norms of all differences of pieces, at least the smallest normal number."""
    return np.maximum(cdist(weights, weights), np.finfo(weights.dtype).tiny)


def quick_piece_distances(weights: FloatArray) -> FloatArray:
    """Return `piece_distances` up to rounding, for training but not for proofs."""
    squares = np.einsum("pd,pd->p", weights, weights)
    between = squares[:, None] + squares - 2 * weights @ weights.T
    # near 0 the difference of squares is rounding error
    smallest = 8 * np.finfo(weights.dtype).eps * squares.max(initial=0)
    distances: FloatArray = np.sqrt(np.maximum(between, smallest) + np.finfo(weights.dtype).tiny)
    return distances
