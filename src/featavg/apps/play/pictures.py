"""The pictures of the page as plain numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.drawing.views import rounded
from featavg.errors import InputError
from featavg.measures.alignment import (
    alignment,
    averaging_index,
    averaging_index_per_neuron,
    clean_accuracy,
)
from featavg.networks.base import TwoLayerNet
from featavg.robustness import Radii, averaged_direction
from featavg.training.trajectory import Trajectory

_LINES = 300  # the most coefficients that are drawn
_GRID = 61
_RULER = 4001  # lengths at which the averaged direction is tried
_VIEW = ((-1.15, 1.35), (-1.25, 1.25))  # the plane that is shown, in units of its reach


def snapshot(moment: Trajectory, test: Sample) -> dict[str, Any]:
    r"""Return the state of a network at the last recorded time.

    Paper: the cosines of Figure 2, the coefficients :math:`\lambda` of Lemma 5.1, the margins
    :math:`y f(x)` of the training points.
    """
    net, sample = moment.net, moment.sample
    margins = moment.margins[-1]
    coefficients = moment.feature_coefficients_at(-1)
    shown = np.arange(0, len(coefficients), math.ceil(coefficients.size / _LINES))
    return {
        "steps": float(moment.steps[-1]),
        "log_time": rounded(moment.log_times[-1], 6),
        "cosines": np.round(alignment(net, sample.centers).astype(float), 3).tolist(),
        "index": rounded(averaging_index(net, sample), 4),
        "neuron_index": rounded(averaging_index_per_neuron(net, sample), 3),
        "lambda": [rounded(row, 4) for row in coefficients[shown]],
        "own": net.own_clusters(sample)[shown].astype(int).tolist(),
        "margins": rounded(np.quantile(margins, (0, 0.5, 1)), 4),
        "log_loss": rounded(moment.log_loss[-1], 4),
        "accuracy": clean_accuracy(net, test.x, test.y),
    }


def slice_through(
    net: TwoLayerNet, test: Sample, point: int, radii: Radii, *, longest: float, reach: float
) -> dict[str, Any] | None:
    r"""Return the decision in the plane of a point, its averaged attack and its exact one.

    Paper: Remark 4.2 for the averaged direction.

    With x the point, a the unit vector against its side along the averaged direction and
    :math:`\rho` its smallest adversarial perturbation, the plane is spanned by
    :math:`e_1 = a` and the part :math:`e_2` of :math:`\rho` that is orthogonal to it. The network
    in the plane is the network with the weights :math:`(We_1, We_2, Wx)` at the points
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
    flat = net.with_parameters(
        net.weights.astype(np.float64) @ plane, net.biases.astype(np.float64)
    )

    def relative(u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the decision in the plane, 1 at the point and below 0 where it changes."""
        at = np.stack(np.broadcast_arrays(u, v, 1.0), axis=-1)
        decision = flat.decision(flat.outputs(at.reshape(-1, 3))).reshape(at.shape[:-1])
        return decision / flat.decision(flat.outputs([[0.0, 0.0, 1.0]]))[0]

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
