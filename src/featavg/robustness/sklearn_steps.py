"""The affine steps of scikit-learn's pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.robustness.rewriting import DOUBLE, quietly

AffineMap = tuple[FloatArray, FloatArray]
"""M and t of M x + t; M may be its diagonal."""

_ACCEPTED = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, TruncatedSVD, a random "
    "projection, a selection of features or 'passthrough'"
)
_COMPUTES = (
    *("predict", "decision_function", "predict_proba", "_predict", "_forward_pass_fast"),
    *("transform", "_transform", "get_support", "_get_support_mask"),
)
_POINTS = 8


def kinds(model: Any) -> set[str]:
    """Return the names of the classes of scikit-learn that an object is an instance of.

    Examples
    --------
    >>> from sklearn.decomposition import IncrementalPCA
    >>> "IncrementalPCA" in kinds(IncrementalPCA()), kinds("passthrough")
    (True, set())
    """
    return {c.__name__ for c in type(model).__mro__ if c.__module__.startswith("sklearn.")}


def affine_map(name: str, step: Any, tolerance: float = DOUBLE) -> AffineMap | None:
    """Return the affine map of a step, None where it is the identity, and refuse any other step.

    The map is written down from the attributes of the step and compared with `step.transform`.

    Parameters
    ----------
    name : str
        The name of the step in its pipeline.
    step : transformer
        The fitted step.
    tolerance : float
        How far the map may differ from `step.transform`, relative to its terms.

    Examples
    --------
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> affine_map("scaler", MinMaxScaler().fit([[2.0], [4.0]]))
    (array([0.5]), array([-1.]))
    """
    what = f"the step {name!r}"
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return None
    names = kinds(step)
    if "FunctionTransformer" in names and step.func is None:
        refuse_own_code(step)
        return None
    found = next((form for kind, form in _FORMS.items() if kind in names), None)
    if found is None:
        got = "a FunctionTransformer with a function" if "FunctionTransformer" in names else None
        got = got or (type(step).__name__ if not isinstance(step, str) else repr(step))
        raise InputError(
            f"{what} must be an affine one, because it is folded into the network ({_ACCEPTED}); "
            f"got {got}."
        )
    attribute, form = found
    refuse_own_code(step)
    refuse_unfitted(what, step, attribute)
    if getattr(step, "clip", False):
        raise InputError(
            f"{what} must be affine, and is not with clip=True; got {type(step).__name__}."
        )
    M, t = (np.asarray(part, dtype=np.float64) for part in form(step))
    _compare(what, step, (M, t), tolerance)
    return M, t


def refuse_unfitted(what: str, model: Any, attribute: str) -> None:
    """Refuse a model without an attribute that fitting sets."""
    if getattr(model, attribute, None) is None:
        raise InputError(
            f"{what} must be fitted first; this {type(model).__name__} has no {attribute}."
        )


def refuse_own_code(model: Any) -> None:
    """Refuse an object that overrides what scikit-learn computes."""
    for name in _COMPUTES:
        owner = next((kind for kind in type(model).__mro__ if name in vars(kind)), None)
        foreign = owner is not None and not owner.__module__.startswith("sklearn.")
        if foreign or name in getattr(model, "__dict__", ()):
            raise InputError(
                f"model must compute what scikit-learn does, because radii would be those of "
                f"another model; {type(model).__name__} has its own {name}."
            )


def dense(array: Any) -> FloatArray:
    """Return coefficients, which may be sparse, as an array of double precision."""
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array, dtype=np.float64)


def _compare(what: str, step: Any, mapped: AffineMap, tolerance: float) -> None:
    """Refuse a step whose `transform` is not the map."""
    M, t = mapped
    x = np.random.default_rng(0).standard_normal((_POINTS, step.n_features_in_))
    x[::2] *= 100
    name = type(step).__name__
    theirs = quietly(name, step.transform, x)
    theirs = dense(theirs)
    mine = (x * M if M.ndim == 1 else x @ M.T) + t
    terms = (np.abs(x * M) if M.ndim == 1 else np.abs(x) @ np.abs(M).T) + np.abs(t)
    if theirs.shape != mine.shape or not (np.abs(theirs - mine) <= tolerance * terms).all():
        raise InputError(
            f"{what} must transform as its attributes say, because it is folded into the network; "
            f"that of this {name} does not."
        )


def _shifted(center: Any, scale: Any, step: Any) -> AffineMap:
    """Return the map (x - center) / scale, either of which may be None."""
    divisor = np.ones(step.n_features_in_) if scale is None else np.asarray(scale, np.float64)
    start = np.zeros(step.n_features_in_) if center is None else np.asarray(center, np.float64)
    return 1 / divisor, -start / divisor


def _standard(step: Any) -> AffineMap:
    return _shifted(
        step.mean_ if step.with_mean else None, step.scale_ if step.with_std else None, step
    )


def _robust(step: Any) -> AffineMap:
    center = step.center_ if step.with_centering else None
    return _shifted(center, step.scale_ if step.with_scaling else None, step)


def _projection(step: Any) -> AffineMap:
    """Return the map of components without a centre, which may be sparse."""
    components = dense(step.components_)
    return components, np.zeros(len(components))


def _pca(step: Any) -> AffineMap:
    components, _ = _projection(step)
    if step.whiten:
        deviations = np.sqrt(np.asarray(step.explained_variance_))
        smallest = np.finfo(deviations.dtype).eps  # as PCA itself does
        components = components / np.maximum(deviations, smallest)[:, None]
    return components, -components @ np.asarray(step.mean_, dtype=np.float64)


def _selection(step: Any) -> AffineMap:
    chosen = np.asarray(step.get_support(indices=True))
    matrix = np.zeros((len(chosen), step.n_features_in_))
    matrix[np.arange(len(chosen)), chosen] = 1
    return matrix, np.zeros(len(chosen))


# for each class an attribute that fitting sets, and the map
_FORMS: dict[str, tuple[str, Callable[[Any], AffineMap]]] = {
    "StandardScaler": ("n_features_in_", _standard),
    "MinMaxScaler": ("scale_", lambda step: (step.scale_, step.min_)),
    "MaxAbsScaler": ("scale_", lambda step: _shifted(None, step.scale_, step)),
    "RobustScaler": ("n_features_in_", _robust),
    "_BasePCA": ("components_", _pca),
    "TruncatedSVD": ("components_", _projection),
    "BaseRandomProjection": ("components_", _projection),
    "SelectorMixin": ("n_features_in_", _selection),
}
