"""Models of other libraries as networks of one hidden layer."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from featavg.errors import InputError
from featavg.networks.shallow import ShallowNet
from featavg.robustness.rewriting import SINGLE, check_predictions, probes, quietly

_ACCEPTED = (
    "a network of one hidden ReLU layer: a ShallowNet, a network or classifier of featavg, a "
    "fitted MLPClassifier or linear classifier of scikit-learn, a pipeline of affine steps before "
    "one of these, or a PyTorch module of Linear, ReLU and Linear"
)


def as_shallow(model: Any, shape: tuple[int, ...] | None = None) -> ShallowNet:
    """Return a model as a network of one hidden layer, in double precision.

    Paper: none, an extension. The labels are the model's own: its `classes_`, or 0, 1, … for the
    outputs of a PyTorch module, of which a single one is a score against 0. The network is compared
    with the model at some points, and refused where it does not decide the same.

    Parameters
    ----------
    model : ShallowNet, estimator or torch.nn.Module
        - A `ShallowNet`, or anything with a method `to_shallow` that returns one.
        - A fitted `MLPClassifier` with at most one hidden layer, of ReLUs or the identity.
        - A fitted linear classifier of scikit-learn: `LogisticRegression`, `LinearSVC`,
          `SGDClassifier`, `RidgeClassifier`, `Perceptron`, `PassiveAggressiveClassifier` or
          `LinearDiscriminantAnalysis`.
        - A `Pipeline` whose steps before one of these are affine: scalers, `PCA`, `TruncatedSVD`,
          random projections, selections of features. They are folded in, so the network takes what
          the pipeline takes.
        - A PyTorch module whose forward pass is a chain of linear layers with one ReLU or leaky
          ReLU between them; flattening, constants that are added or multiplied, and, in evaluation
          mode, batch normalization and dropout may be part of it.
    shape : tuple of int, optional
        The shape of a point, if points are images or the like and a PyTorch module flattens them.
        The constants that it adds or multiplies before depend on it.

    Raises
    ------
    InputError
        For everything else.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), RidgeClassifier()).fit(X, y)
    >>> net = as_shallow(model)
    >>> net
    ShallowNet(0 neurons, 13 coordinates, 3 outputs)
    >>> bool((net.predict(X) == model.predict(X)).all())
    True
    """
    if isinstance(model, ShallowNet):
        return model
    if isinstance(model, type):
        raise InputError(f"model must be {_ACCEPTED}; got the class {model.__name__} itself.")
    if callable(getattr(model, "to_shallow", None)):
        return _own(model)
    net = None
    if _is_torch_module(model):
        from featavg.robustness.torch_models import from_torch

        net = from_torch(model, shape)
    elif any(kind.__module__.startswith("sklearn.") for kind in type(model).__mro__):
        from featavg.robustness.sklearn_models import from_sklearn

        net = from_sklearn(model, as_shallow)
    if net is None:
        raise InputError(f"model must be {_ACCEPTED}; got {_described(model)}.")
    return net


def point_shape(X: Any) -> tuple[int, ...] | None:
    """Return the shape of a point, or None if points are rows."""
    try:
        shape = np.shape(X)
    except ValueError:  # lists of different lengths, which are refused as points
        return None
    return tuple(shape[1:]) if len(shape) > 2 else None


def check_columns(model: Any, X: Any) -> None:
    """Refuse a frame whose columns are not those that a model was fitted to, in their order.

    scikit-learn's `predict` refuses it as well; as an array it would be other points.
    """
    fitted, given = _fitted_columns(model), getattr(X, "columns", None)
    if fitted is None or given is None:
        return
    if list(fitted) != list(given):
        raise InputError(
            "X must have the columns that the model was fitted to, in their order "
            f"({_listed(fitted)}); got {_listed(given)}."
        )


def _fitted_columns(model: Any) -> Any:
    """Return the names of the columns that a model was fitted to; None if it knows none.

    A pipeline asks its first step alone, which knows none if it passes points through.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return names
    steps = [step for _, step in getattr(model, "steps", ()) if step not in (None, "passthrough")]
    return _fitted_columns(steps[0]) if steps else None


def _listed(names: Any) -> str:
    """Return the first names, and how many there are."""
    texts = [str(name) for name in names]
    return ", ".join(texts) if len(texts) <= 6 else f"{', '.join(texts[:5])}, … ({len(texts)})"


def _own(model: Any) -> ShallowNet:
    """Return what `to_shallow` returns, compared with `predict` where there is one."""
    name = type(model).__name__
    net = model.to_shallow()
    if not isinstance(net, ShallowNet):
        raise InputError(f"to_shallow must return a ShallowNet; that of {name} returns {net!r}.")
    if callable(getattr(model, "predict", None)):
        x = probes(net)
        predicted = quietly(name, model.predict, x)
        check_predictions(net, x, predicted, name, tolerance=SINGLE)
    return net


def _is_torch_module(model: Any) -> bool:
    torch = sys.modules.get("torch")  # where it is not imported, nothing is one of its modules
    return torch is not None and isinstance(model, torch.nn.Module)


def _described(model: Any) -> str:
    if isinstance(model, (str, bytes, int, float, list, tuple, dict)) or model is None:
        text = repr(model)
        return text if len(text) <= 60 else f"{text[:57]}..."
    name = type(model).__name__
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"
