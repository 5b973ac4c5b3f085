"""Pictures of curves: through training, over the radius, along a frontier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from featavg import checks
from featavg.drawing.common import radius_grid, robust_accuracy, shares_above
from featavg.drawing.pictured import on_axes
from featavg.drawing.views import Mark
from featavg.errors import InputError, shortened
from featavg.estimators.frontier import Frontier, frontier_curves
from featavg.robustness import Radii, RobustCurve
from featavg.training.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROLES = ("coarse", "fine", "third", "paper", "quiet")  # the colours of several results, in turn


def coefficients(run: Trajectory, *, ax: Axes | None = None) -> Axes:
    r"""Draw the feature coefficients :math:`\lambda_{r,j}` over the time of training.

    Paper: Lemma 5.1; Theorems 4.5 and 4.7 say that those of own centres grow together, and that the
    others stay small. The line is the mean over neurons and own centres, the band reaches from the
    smallest to the largest.

    Parameters
    ----------
    run : Trajectory
        The record of a training.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, featavg as fa
    >>> rng = np.random.default_rng(0)
    >>> train = fa.MultiCluster(clusters=6, dim=1000).sample(300, rng=rng)
    >>> net = fa.BinaryNet.init(train, width=4, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    >>> run = fa.descend(net, train, learning_rate=0.003, steps=1000, record=40)
    >>> fa.plot.coefficients(run).get_ylabel()
    'λ'
    """
    return on_axes(_checked("run", run, Trajectory).view(), ax)


def robust_curve(
    *curves: RobustCurve,
    labels: Sequence[str] | None = None,
    theory: float | Sequence[float] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw robust accuracy over the radius, for one network or several.

    Paper: Figure 3. An exact curve is one solid line, a bracket two lines, and an attack a dashed
    line, because it only shows what is not robust.

    Parameters
    ----------
    *curves : RobustCurve
        Curves in the same norm.
    labels : sequence of str, optional
        The name of each curve; by default how it was computed.
    theory : float or sequence of float
        Radii to mark, such as sqrt(d / k).
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, featavg as fa
    >>> rng = np.random.default_rng(0)
    >>> train = fa.MultiCluster(clusters=6, dim=1000).sample(300, rng=rng)
    >>> test = train.fresh(100, rng=rng)
    >>> coarse = fa.BinaryNet.init(train, width=3, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    >>> fine = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng, readout="argmax")
    >>> nets = [fa.descend(n, train, learning_rate=0.003, steps=100).net for n in (coarse, fine)]
    >>> curves = [fa.robust_curve(n, test.x, test.y, radii=np.arange(31)) for n in nets]
    >>> ax = fa.plot.robust_curve(
    ...     *curves, labels=["2 classes", "6 classes"], theory=np.sqrt([1000 / 6, 1000 / 2]))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['2 classes', '6 classes']
    """
    if not curves:
        raise InputError("curves must have at least one curve; got none.")
    names = _labels(labels, [_checked("curves", c, RobustCurve).method for c in curves])
    norms = sorted({curve.norm for curve in curves})
    if len(norms) > 1:
        raise InputError(f"curves must have the same norm; got {' and '.join(norms)}.")
    lines = [line for k, curve in enumerate(curves) for line in curve.lines(names[k], _role(k))]
    radii_of_theory = checks.vector("theory", np.atleast_1d(theory))
    marks = [Mark(f"{radius:.3g}", float(radius)) for radius in radii_of_theory]
    return on_axes(robust_accuracy(lines, norm=norms[0], marks=marks), ax)


def radii(*found: Radii, labels: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the share of points whose decision no perturbation of a norm turns.

    Paper: none, an extension. Where bounds differ, two lines enclose the share.

    Parameters
    ----------
    *found : Radii
        What `exact_radii` or `minimal_norm` found, in the same norm.
    labels : sequence of str, optional
        The name of each.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import featavg as fa
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> found = fa.exact_radii(model, X, y)
    >>> fa.plot.radii(found).get_ylabel()
    'share of points'
    """
    if not found:
        raise InputError("found must have at least one Radii; got none.")
    several = [_checked("found", one, Radii) for one in found]
    if len(several) == 1 and labels is None:
        return on_axes(several[0].view(), ax)
    norms = sorted({one.norm for one in several})
    if len(norms) > 1:
        raise InputError(f"found must have the same norm; got {' and '.join(norms)}.")
    names = _labels(labels, [f"median {np.median(one.lower):.3g}" for one in several])
    grid = radius_grid(*(bound for one in several for bound in (one.lower, one.upper)))
    lines = [
        line
        for k, one in enumerate(several)
        for line in shares_above(
            names[k], one.lower, one.upper, _role(k), radii=grid, exact=bool(one.exact.all())
        )
    ]
    view = several[0].view()
    return on_axes(robust_accuracy(lines, title=view.title, norm=norms[0], y=view.panels[0].y), ax)


def frontier(*models: Any, labels: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw accuracy over the median certified radius along the path of a classifier.

    Paper: none, an extension. A square marks the place that the classifier chose.

    Parameters
    ----------
    *models : estimators or Frontier
        Fitted classifiers of featavg, or their `frontier_`.
    labels : sequence of str, optional
        The name of each; by default that of its class.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import featavg as fa
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = fa.AveragingClassifier(max_iter=300, random_state=0).fit(X[:600], y[:600] % 2)
    >>> fa.plot.frontier(model).get_xlabel()
    'median certified radius'
    """
    if not models:
        raise InputError("models must have at least one classifier; got none.")
    paths = [_frontier(model) for model in models]
    if len(paths) == 1 and labels is None:
        return on_axes(paths[0].view(), ax)
    names = _labels(labels, [type(model).__name__ for model in models])
    lines = [line for k, path in enumerate(paths) for line in path.lines(names[k], _role(k))]
    return on_axes(frontier_curves(lines, paths[0].points, paths[0].held_out), ax)


def _frontier(model: Any) -> Frontier:
    path = getattr(model, "frontier_", model)
    if not isinstance(path, Frontier):
        raise InputError(f"models must be fitted classifiers of featavg; got {shortened(model)}.")
    return path


def _checked(name: str, value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise InputError(f"{name} must be of the class {kind.__name__}; got {shortened(value)}.")
    return value


def _labels(labels: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    names = list(usual if labels is None else labels)
    if isinstance(labels, str) or not all(isinstance(name, str) for name in names):
        raise InputError(f"labels must be a list of names; got {shortened(labels)}.")
    if len(names) != len(usual):
        raise InputError(
            f"labels must have one name for each of {len(usual)} results; got {len(names)}."
        )
    return names


def _role(place: int) -> str:
    return _ROLES[place % len(_ROLES)]
