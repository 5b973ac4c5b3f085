"""The pictures of the page as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.drawing.views import rounded
from featavg.errors import InputError
from featavg.estimators.piece_alignment import deciding_pieces, piece_averaging_index
from featavg.estimators.pieces import PieceHead
from featavg.measures.alignment import (
    alignment,
    averaging_index,
    averaging_index_per_neuron,
    clean_accuracy,
    cosines,
    participation,
)
from featavg.robustness import Radii, averaged_direction
from featavg.training.trajectory import Trajectory

_LINES = 300  # the most coefficients that are drawn
_GRID = 61
_RULER = 4001  # lengths at which the averaged direction is tried
_VIEW = ((-1.15, 1.35), (-1.25, 1.25))  # the plane that is shown, in units of its reach


def snapshot(moment: Trajectory, test: Sample, *, by_side: bool) -> dict[str, Any]:
    r"""Return the state of a network at the last recorded time.

    Paper: the cosines of Figure 2, the coefficients :math:`\lambda` of Lemma 5.1, the margins
    :math:`y f(x)` of the training points. The own centres of a neuron are those of its class or,
    with `by_side`, of its side.
    """
    net, sample = moment.net, moment.sample
    margins = moment.margins[-1]
    coefficients = moment.feature_coefficients_at(-1)
    shown = _some_rows(coefficients)
    sides = net.neuron_signs[:, None] == sample.law.signs[None, :]
    own = sides if by_side else net.own_clusters(sample)
    return {
        "steps": float(moment.steps[-1]),
        "log_time": rounded(moment.log_times[-1], 6),
        "cosines": np.round(alignment(net, sample.centers).astype(float), 3).tolist(),
        "index": rounded(averaging_index(net, sample), 4),
        "neuron_index": rounded(averaging_index_per_neuron(net, sample), 3),
        "lambda": [rounded(row, 4) for row in coefficients[shown]],
        "own": own[shown].astype(int).tolist(),
        "margins": rounded(np.quantile(margins, (0, 0.5, 1)), 4),
        "log_loss": rounded(moment.log_loss[-1], 4),
        "accuracy": clean_accuracy(net, test.x, test.y),
    }


def snapshot_of_pieces(
    head: PieceHead, sample: Sample, test: Sample, margin: float
) -> dict[str, Any]:
    r"""Return the state of affine pieces that are trained on their radius, as of a network.

    Paper: none, an extension. A vector that is added to all pieces changes nothing, so a piece is
    shown by how it differs from the mean of the pieces that decide the points of the other side, as
    in `piece_averaging_index`. Its loss is :math:`\log(1 + e^{4(m - r)/m})` with the certified
    radius r and `margin` m.
    """
    classes = (sample.y == 1).astype(np.int64)
    deciding = head.weights[deciding_pieces(head, sample.x, classes)]
    means = np.stack([deciding[classes == c].mean(axis=0) for c in (1, 0)])  # of the other class
    order = np.argsort(-head.class_of, kind="stable")  # positive ones first
    apart = (head.weights - means[head.class_of])[order]
    own = sample.law.signs[:, None] == (2 * head.class_of[order] - 1)[None, :]
    along = cosines(sample.centers, apart)
    coefficients = np.linalg.lstsq(sample.centers.T, apart.T, rcond=None)[0].T
    coefficients *= np.square(sample.centers).sum(axis=1)
    shown = _some_rows(coefficients)
    margins = (2 * classes - 1) * head.decision(sample.x)
    radii = head.signed_radii(sample.x, classes)
    return {
        "cosines": np.round(along, 3).tolist(),
        "index": rounded(piece_averaging_index(head, sample), 4),
        "neuron_index": rounded(participation(along, own), 3),
        "lambda": [rounded(row, 4) for row in coefficients[shown]],
        "own": own.T[shown].astype(int).tolist(),
        "margins": rounded(np.quantile(margins, (0, 0.5, 1)), 4),
        "log_loss": rounded(math.log(np.logaddexp(0, 4 * (1 - radii / margin)).mean()), 4),
        "accuracy": float((head.predict(test.x) == (test.y == 1)).mean()),
    }


def _some_rows(coefficients: FloatArray) -> IntArray:
    """Return which rows are drawn, so that there are not too many lines."""
    return np.arange(0, len(coefficients), math.ceil(coefficients.size / _LINES))


def slice_through(
    in_plane: Callable[[FloatArray], Callable[[FloatArray], FloatArray]],
    test: Sample,
    point: int,
    radii: Radii,
    *,
    longest: float,
    reach: float,
) -> dict[str, Any] | None:
    r"""Return the decision in the plane of a point, its averaged attack and its exact one.

    Paper: Remark 4.2 for the averaged direction.

    With x the point, a the unit vector against its side along the averaged direction and
    :math:`\rho` its smallest adversarial perturbation, the plane is spanned by
    :math:`e_1 = a` and the part :math:`e_2` of :math:`\rho` that is orthogonal to it. `in_plane`
    returns the decision at the points :math:`u e_1 + v e_2 + x` as a function of
    :math:`(u, v, 1)`. None if there is no such plane: the point is misclassified, no perturbation
    changes its decision, or the averaged direction is zero. `radii` is the radius of the point, and
    the averaged direction is followed no further than `longest`. The picture holds a circle of the
    radius `reach`: with the same reach, the pictures of two networks have one scale.
    """
    x, y = test.x[point : point + 1].astype(np.float64), test.y[point : point + 1]
    radius = float(radii.upper[0])
    if radius == 0 or not math.isfinite(radius):
        return None
    try:
        direction = averaged_direction(test)
    except InputError:
        return None
    e1 = -float(y[0]) * direction
    rho = radii.perturbations[0]
    across = rho - (rho @ e1) * e1
    length = float(np.linalg.norm(across))
    e2 = across / length if length > 1e-9 * radius else np.zeros_like(across)
    plane = np.column_stack([e1, e2, x[0]])
    decide = in_plane(plane)
    at_point = decide(np.array([[0.0, 0.0, 1.0]]))[0]

    def relative(u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the decision in the plane, 1 at the point and below 0 where it changes."""
        at = np.stack(np.broadcast_arrays(u, v, 1.0), axis=-1)
        return decide(at.reshape(-1, 3)).reshape(at.shape[:-1]) / at_point

    ahead = np.linspace(0, max(longest, 1.5 * radius), _RULER)
    turned = np.flatnonzero(relative(ahead, np.zeros(1)) < 0)
    along = float(ahead[turned[0]]) if len(turned) else math.inf
    u, v = (np.linspace(low * reach, high * reach, _GRID) for low, high in _VIEW)
    return {
        "point": point,
        "label": int(y[0]),
        "cluster": int(test.cluster[point]),
        "radius": rounded(radius, 5),
        "exact": bool(radii.exact[0]),
        "averaged": rounded(along, 5),
        "tip": rounded([rho @ e1, rho @ e2], 5),
        "u": rounded([u[0], u[-1]], 5),
        "v": rounded([v[0], v[-1]], 5),
        "scores": rounded(relative(u[None, :], v[:, None]), 3),
    }
