"""A classifier that is trained on its own certified radius."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from featavg import checks
from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.estimators._base import CertifiedClassifier, TrainingData
from featavg.estimators.piece_start import UNKNOWN, Groups, Shape
from featavg.estimators.piece_training import Schedule
from featavg.estimators.pieces import PieceHead
from featavg.estimators.principal import principal_axes
from featavg.estimators.radius_fitting import MARGINS, PieceTask, fit_pieces, prototype_radius
from featavg.estimators.scaling import Scaling

# "auto": at most so many pieces for a class and in total, and at least so many points for each.
_PIECES, _ALL_PIECES, _POINTS_OF_A_PIECE = 24, 240, 8
# The same of prototypes, which learn less by heart than pieces with biases of their own.
_PROTOTYPES, _ALL_PROTOTYPES, _POINTS_OF_A_PROTOTYPE = 120, 480, 2
_FEATURES = 128
_FEWER_PIECES = (1, 4, 12)
# With so few points, other shapes are tried too.
_FEW_POINTS = 2000
# All steps are taken with so many points, and this share of them with few.
_MANY_POINTS, _FEWEST_STEPS = 3000, 1 / 3
# A smaller margin takes this share of all steps, or that share of those for the largest margin.
_NEXT_OF_ALL, _NEXT_OF_FIRST = 1 / 6, 1 / 3
# Points that differ by less, relative to their mean, are equal up to rounding.
_ROUNDING = 1e-12
# The spread that points may have: beyond it numbers whose squares count overflow, in single
# precision where points are not scaled.
_SPREAD, _UNSCALED_SPREAD = (1e-100, 1e100), (1e-8, 1e16)


class RadiusClassifier(CertifiedClassifier):
    r"""A classifier that is trained on its own certified radius.

    Paper: none, an extension.

    Each class has several affine pieces, and the class of the largest piece is predicted. Training
    maximises the radius that this certifies,

    .. math:: r(x) = \min_q \max_p \frac{z_p(x) - z_q(x)}{\|w_p - w_q\|}

    over own pieces p and opposing ones q, up to a margin m: it minimises the mean of
    :math:`\log(1 + e^{4 (m - r)/m})`. On the data of the paper this objective finds the features
    one by one from coarse labels alone, where the cross-entropy finds their average. Before the
    pieces there may be a 1-Lipschitz map of learned features, see
    `featavg.estimators.pieces.SortedPairs`.

    Parameters
    ----------
    pieces : "auto" or int
        The number of pieces of each class.
    prototypes : "auto" or bool
        Whether pieces have no biases of their own, :math:`z_p = w_p \cdot x - \|w_p\|^2/2`, so that
        the nearest of the prototypes w decides. "auto" compares both with up to 2,000 points, of
        which there may be 120 prototypes of each class, and has biases with more.
    features : "auto", int or None
        The number of learned features, an even number; None or 0 for pieces that are functions of
        the points themselves. "auto" has 128 of them, or 8 for each coordinate where that is less;
        with up to 2,000 points it compares shapes with and without.
    margin : "auto" or float
        m, in the units of X (if ``scale="standard"``: in units of the scaled features). "auto"
        takes the largest median radius on held-out points whose accuracy is within `robustness`
        standard errors of the best.
    robustness : float
        How many standard errors of accuracy "auto" may give up for a larger radius; 0 is the most
        accurate.
    class_weight : "balanced", mapping or None
        The weight of the points of each class, as in scikit-learn.
    scale : {"norm", "standard", None}
        As in `AveragingClassifier`. Radii are always in the units of X, but with "standard" the
        margin, and so what training aims at, is in the units of scaled features.
    max_iter : int
        Steps of training for the largest margin; each smaller one starts where the one before has
        ended, and takes a sixth of that. With less than 3,000 points there are fewer steps, and a
        smaller margin takes up to a third of them.
    batch_size : int
        The number of points of a step.
    n_init : int
        The number of starts of k-means, whose centres are the first pieces.
    validation_fraction : float
        The share of each class that is held out to choose the margin. With up to 2,000 points each
        point is held out once instead, in one of four parts.
    random_state : int, RandomState or None
        Controls the start, the order of points and the held-out points.

    Attributes
    ----------
    classes_ : array
        The class labels.
    frontier_ : Frontier
        Margins, and the accuracy and median radius they have on held-out points.
    margin_ : float
        The chosen margin.
    head_ : PieceHead
        The pieces, for points scaled by `scaling_`.
    scaling_ : Scaling
        The shift and the factor by which points are scaled.
    n_iter_ : int
        The number of steps of training for this margin and those before.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=6, dim=600).sample(300, rng=rng)
    >>> test = train.fresh(100, rng=rng)
    >>> model = RadiusClassifier(random_state=0).fit(train.x, train.y)    # coarse labels alone
    >>> model.score(test.x, test.y), bool(np.median(model.predict_radius(test.x)) > 16)
    (1.0, True)
    """

    head_: PieceHead
    margin_: float
    n_iter_: int

    def __init__(
        self,
        pieces: str | int = "auto",
        *,
        prototypes: str | bool = "auto",
        features: str | int | None = "auto",
        margin: str | float = "auto",
        robustness: float = 1.0,
        class_weight: Any = None,
        scale: str | None = "norm",
        max_iter: int = 900,
        batch_size: int = 256,
        n_init: int = 1,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.pieces = pieces
        self.prototypes = prototypes
        self.features = features
        self.margin = margin
        self.robustness = robustness
        self.class_weight = class_weight
        self.scale = scale
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_init = n_init
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, subclass: Any = None, sample_weight: Any = None
    ) -> RadiusClassifier:
        """Train on points and their classes, and on subclasses as far as they are known.

        Parameters
        ----------
        X : array or frame of shape (points, features)
            The points; they must not be all the same.
        y : array of shape (points,)
            Their classes.
        subclass : array of shape (points,), optional
            Their subclasses; None or NaN where one is not known. A point of a known subclass is
            defended by the pieces of this subclass alone.
        sample_weight : array of shape (points,), optional
            How much each point counts; multiplied by `class_weight`.
        """
        fraction = self._held_out_share()
        steps = checks.count("max_iter", self.max_iter)
        batch = checks.count("batch_size", self.batch_size)
        robustness = checks.scale("robustness", self.robustness, zero=True)
        starts = checks.count("n_init", self.n_init)
        data = self._checked(X, y, sample_weight)
        _check_spread(data.x, self.scaling_, is_scaled=self.scale is not None)
        axes = principal_axes(data.x, data.codes, data.rng)
        sizes: FloatArray = np.bincount(data.codes, weights=data.weights.repeats).astype(float)
        # double precision only where nothing is random, and weights must count as repeated points
        precision = data.x.dtype if len(data.x) <= batch else np.float32
        task = PieceTask(
            (data.x @ axes.T.astype(data.x.dtype)).astype(precision),
            data.codes,
            data.weights,
            _groups(data, subclass, X),
            _schedule(steps, batch, sizes.sum()),
            starts,
            robustness,
            axes,
            self.scaling_,
        )
        shapes = self._shapes(sizes, len(axes))
        margins = self._margins(task, shapes[0].pieces, data.rng)
        head, frontier = fit_pieces(task, shapes, margins, fraction, data.rng)
        unit = _unit(self.scaling_)
        self.frontier_ = replace(frontier, values=frontier.values / unit)
        self.margin_ = float(self.frontier_.values[frontier.chosen])
        self.n_iter_ = task.schedule.first_steps + frontier.chosen * task.schedule.next_steps
        self.head_ = head.after_projection(axes)
        return self

    def _shapes(self, sizes: FloatArray, dim: int) -> list[Shape]:
        """Return the shapes to compare, the larger ones last, for classes of these sizes."""
        is_small = sizes.sum() <= _FEW_POINTS
        pieces = _number(sizes, _PIECES, _ALL_PIECES, _POINTS_OF_A_PIECE)
        many = _number(sizes, _PROTOTYPES, _ALL_PROTOTYPES, _POINTS_OF_A_PROTOTYPE)
        numbers = {
            False: [p for p in _FEWER_PIECES if p < pieces and is_small] + [pieces],
            True: sorted({max(1, many // 3), max(1, 2 * many // 3), many}),
        }
        if not _is_auto("pieces", self.pieces):
            numbers = {kind: [checks.count("pieces", self.pieces)] for kind in numbers}
        features = [0, min(_FEATURES, 8 * dim)] if is_small else [min(_FEATURES, 8 * dim)]
        if not _is_auto("features", self.features):
            features = [_even(self.features)]
        kinds = [False, True] if is_small and 0 in features else [False]
        if not _is_auto("prototypes", self.prototypes):
            kinds = [checks.flag("prototypes", self.prototypes)]
        shapes = []
        for number in features:
            # with features, which take longer, only the ends and one kind
            is_long = number > 0 and len(features) > 1
            for kind in kinds[:1] if is_long else kinds:
                ends = [numbers[kind][0], numbers[kind][-1]] if is_long else numbers[kind]
                shapes += [Shape(count, number, kind) for count in dict.fromkeys(ends)]
        return shapes

    def _margins(self, task: PieceTask, pieces: int, rng: np.random.Generator) -> list[float]:
        """Return the margins to compare, for scaled points, the largest first."""
        if _is_auto("margin", self.margin):
            unit = prototype_radius(task, pieces, rng)
            return [unit * margin for margin in MARGINS]
        return [checks.scale("margin", self.margin) * _unit(self.scaling_)]


def _number(sizes: FloatArray, most: int, most_of_all: int, points: int) -> int:
    """Return how many pieces classes of these sizes may have each, given the points for each."""
    return int(np.clip(sizes.min() // points, 1, min(most, max(2, most_of_all // len(sizes)))))


def _schedule(steps: int, batch: int, points: float) -> Schedule:
    """Return fewer steps where there are few points, to which more of them would not add."""
    share = float(np.clip(points / _MANY_POINTS, _FEWEST_STEPS, 1))
    first = max(1, round(share * steps))
    following = min(_NEXT_OF_ALL * steps, _NEXT_OF_FIRST * first)
    return Schedule(first, max(1, round(following)), batch)


def _check_spread(x: FloatArray, scaling: Scaling, *, is_scaled: bool) -> None:
    """Refuse scaled points that are all the same, or whose spread in the units of X is extreme."""
    units = 1 / np.asarray(scaling.factor)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        spread = float((np.ptp(x, axis=0) * units).max())
    if spread <= _ROUNDING * np.abs(scaling.shift).max():
        raise InputError(
            f"X must have points that differ; got {len(x)} points that are all the same."
        )
    lowest, highest = _SPREAD if is_scaled else _UNSCALED_SPREAD
    why = "for radii to be computed" if is_scaled else "to be trained on without a scale"
    for size in (units.min(), units.max()) if is_scaled else (spread,):
        if not lowest <= size <= highest:
            raise InputError(
                f"X must have a spread from {lowest:g} to {highest:g} {why}; got {size:g}."
            )


def _unit(scaling: Scaling) -> float:
    """Return the factor from the units of margins to those of scaled points."""
    return float(scaling.factor) if np.ndim(scaling.factor) == 0 else 1.0


def _is_auto(name: str, value: Any) -> bool:
    if isinstance(value, str):
        checks.choice(name, value, ("auto",))
        return True
    return False


def _even(features: Any) -> int:
    """Return the number of features; None is 0."""
    number = 0 if features is None else checks.count("features", features, minimum=0)
    if number % 2:
        raise InputError(
            f"features must be an even number, for they are sorted in pairs; got {features!r}."
        )
    return number


def _groups(data: TrainingData, subclass: Any, X: Any) -> Groups:
    """Return classes, or subclasses as far as they are known; classes without any are one group."""
    if subclass is None:
        return Groups(data.codes, np.arange(data.codes.max() + 1))
    checks.unmasked("subclass", subclass)
    names = column_or_1d(np.asarray(subclass, dtype=object))  # a list of text and NaN as it is
    check_consistent_length(X, names)
    names = names[data.kept]
    known = np.array([not checks.is_missing(name) for name in names.tolist()])
    pairs = [(c, str(name)) for c, name in zip(data.codes.tolist(), names.tolist(), strict=True)]
    kinds = sorted({pair for pair, is_known in zip(pairs, known, strict=True) if is_known})
    with_some = {c for c, _ in kinds}
    kinds = sorted([*kinds, *((c, "") for c in set(data.codes.tolist()) - with_some)])
    number = {pair: i for i, pair in enumerate(kinds)}
    labels = np.array(
        [
            number[pair] if is_known else number.get((pair[0], ""), UNKNOWN)
            for pair, is_known in zip(pairs, known, strict=True)
        ]
    )
    return Groups(labels, np.array([c for c, _ in kinds]))
