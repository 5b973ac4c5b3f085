"""Certified radii of any classifier whose radii can be computed, also at the end of a pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from featavg.arrays import FloatArray
from featavg.errors import CertificationWarning
from featavg.robustness.certify import exact_radii
from featavg.robustness.radii import Radii

# A lower bound of a radius that is nearer than this to the upper one needs no warning.
_CLOSE_ENOUGH = 1e-3


def certified_radius(
    model: Any, X: ArrayLike, *, time_limit: float | None = None, n_jobs: int | None = None
) -> FloatArray:
    """Return a certified L2 radius of each prediction of a model, in the units of X.

    Paper: none, an extension.

    Parameters
    ----------
    model : estimator or network
        What `featavg.exact_radii` takes: a classifier of this package, an `MLPClassifier` or linear
        classifier of scikit-learn, a PyTorch module, or a pipeline of affine steps (scalers, PCA)
        that ends with one of these.
    X : array of shape (points, features)
        Points, as the first step of the pipeline takes them.
    time_limit : float, optional
        Seconds for each point. Where it is too short the radius is a lower bound, and a
        `featavg.CertificationWarning` says so.
    n_jobs : int, optional
        The number of processes, -1 for one on each core.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from featavg import AveragingClassifier, certified_radius
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), AveragingClassifier(random_state=0)).fit(X, y)
    >>> certified_radius(model, X[:3]).shape
    (3,)
    """
    jobs = None if n_jobs is None else effective_n_jobs(n_jobs)
    radii = exact_radii(
        model,
        X,
        time_limit=time_limit,
        certificates=False,
        jobs=jobs,
    )
    warn_of_bounds(radii, stacklevel=2)
    return radii.lower


def warn_of_bounds(radii: Radii, *, stacklevel: int) -> None:
    """Warn if some of the radii are bounds only."""
    bounds = radii.gap > _CLOSE_ENOUGH
    if bounds.any():
        warnings.warn(
            f"{bounds.sum()} of {len(radii)} radii are lower bounds only, "
            f"{' and '.join(_how_far(radii))}; certify returns both bounds of each.",
            CertificationWarning,
            stacklevel=stacklevel + 1,
        )


def _how_far(radii: Radii) -> Iterator[str]:
    """Describe how far radii may be above their lower bounds."""
    gaps = radii.gap
    known = gaps.max(initial=0.0, where=radii.turns)
    unknown = int((~radii.turns & (gaps > _CLOSE_ENOUGH)).sum())
    if known > _CLOSE_ENOUGH:
        yield (
            f"up to {100 * known:.2g} % below the shortest known perturbation that changes "
            "the prediction"
        )
    if unknown:
        yield f"for {unknown} no perturbation is known that changes the prediction"
