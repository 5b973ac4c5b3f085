"""Classifiers and pipelines of scikit-learn as networks of one hidden layer.

Classes are recognised by name and module, so that nothing has to be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import softmax

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.shallow import ShallowNet
from featavg.robustness.rewriting import (
    DOUBLE,
    SINGLE,
    check_predictions,
    check_scores,
    linear_net,
    probes,
    quietly,
)
from featavg.robustness.sklearn_steps import (
    affine_map,
    dense,
    kinds,
    refuse_own_code,
    refuse_unfitted,
)

_LINEAR = {
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LogisticRegression",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
}  # and their subclasses, such as LogisticRegressionCV


def from_sklearn(model: Any, inner: Callable[[Any], ShallowNet]) -> ShallowNet | None:
    """Return an estimator of scikit-learn as a network, or None if it is of another kind.

    Parameters
    ----------
    model : estimator
        The estimator.
    inner : callable
        Rewrites the last step of a pipeline.
    """
    names = kinds(model)
    if "Pipeline" in names:
        refuse_own_code(model)
        net = _pipeline(model, inner)
    elif "MLPClassifier" in names:
        refuse_own_code(model)
        net = _mlp(model)
    elif names & _LINEAR:
        refuse_own_code(model)
        net = _linear(model)
    else:
        return None
    _check(model, net)
    return net


def _mlp(model: Any) -> ShallowNet:
    name = type(model).__name__
    refuse_unfitted("model", model, "coefs_")
    weights = [np.asarray(W, dtype=np.float64).T for W in model.coefs_]
    biases = [np.asarray(b, dtype=np.float64) for b in model.intercepts_]
    if len(weights) > 2:
        sizes = ", ".join(str(len(W)) for W in weights[:-1])
        raise InputError(
            f"model must have one hidden layer, because exact radii of deeper networks are not "
            f"known; this {name} has {len(weights) - 1}, of {sizes} neurons."
        )
    if len(weights) == 2 and model.activation not in ("relu", "identity"):
        raise InputError(
            f"model must be piecewise linear, with the activation 'relu' or 'identity'; this "
            f"{name} has {model.activation!r}."
        )
    if model.out_activation_ == "logistic" and len(biases[-1]) > 1:
        raise _many_labels(name)
    labels = _labels(model, len(biases[-1]))
    if len(weights) == 1:
        return linear_net(weights[0], biases[0], labels)
    if model.activation == "identity":
        return linear_net(weights[1] @ weights[0], weights[1] @ biases[0] + biases[1], labels)
    return ShallowNet(weights[0], biases[0], weights[1], biases[1], labels=labels)


def _linear(model: Any) -> ShallowNet:
    refuse_unfitted("model", model, "coef_")
    coefficients = np.atleast_2d(dense(model.coef_))
    intercepts = np.broadcast_to(dense(model.intercept_).ravel(), len(coefficients))
    return linear_net(coefficients, intercepts, _labels(model, len(coefficients)))


def _labels(model: Any, outputs: int) -> Any:
    """Return the classes of a model, one for each output, or two for one output."""
    name = type(model).__name__
    classes = model.classes_
    if isinstance(classes, list) or np.ndim(classes) != 1:
        raise _many_labels(name)
    if len(classes) < 2:
        raise InputError(f"model must have at least two classes; this {name} has {len(classes)}.")
    if outputs != len(classes) and (outputs, len(classes)) != (1, 2):
        raise _many_labels(name)
    return np.asarray(classes)


def _many_labels(name: str) -> InputError:
    return InputError(f"model must give one label to each point; this {name} gives several.")


def _pipeline(model: Any, inner: Callable[[Any], ShallowNet]) -> ShallowNet:
    if not model.steps:
        raise InputError("model must have a classifier as its last step; this Pipeline is empty.")
    *before, (_, last) = model.steps
    steps = list(_flat(before))
    maps = [affine_map(name, step, _tolerance(step)) for name, step in steps]
    net = inner(last)
    for (name, step), mapped in zip(reversed(steps), reversed(maps), strict=True):
        if mapped is None:
            continue
        if len(mapped[1]) != net.dim:
            raise InputError(
                f"the step {name!r} must return the {net.dim} coordinates that the next one takes; "
                f"this {type(step).__name__} returns {len(mapped[1])}."
            )
        net = net.after_affine(*mapped)
    return net


def _flat(steps: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the steps, and for a pipeline among them its own steps."""
    for name, step in steps:
        if "Pipeline" in kinds(step):
            refuse_own_code(step)
            yield from _flat(step.steps)
        else:
            yield name, step


def _check(model: Any, net: ShallowNet) -> None:
    """Compare a network with the scores and predictions of its model."""
    name, x, tolerance = type(model).__name__, probes(net), _tolerance(model)
    if hasattr(model, "decision_function"):
        scores = quietly(name, model.decision_function, x)
        check_scores(net, x, scores, name, tolerance=tolerance)
    elif "MLPClassifier" in kinds(_last(model)):
        scores = quietly(name, model.predict_proba, x)
        check_scores(net, x, scores, name, link=_probabilities, tolerance=tolerance)
    check_predictions(net, x, quietly(name, model.predict, x), name, tolerance=tolerance)


def _last(model: Any) -> Any:
    """Return the classifier at the end of a pipeline."""
    while "Pipeline" in kinds(model):
        model = model.steps[-1][1]
    return model


def _probabilities(outputs: FloatArray) -> FloatArray:
    """Return the probabilities of an `MLPClassifier`; of two classes the first has the output 0."""
    return softmax(outputs, axis=1)


def _tolerance(model: Any) -> float:
    """Return the tolerance for what a model was fitted to: single or double precision."""
    parts = [model]
    if "Pipeline" in kinds(model):
        parts = [step for _, step in _flat(model.steps)]
    arrays: list[FloatArray] = []
    for part in parts:
        for value in getattr(part, "__dict__", {}).values():
            arrays += value if isinstance(value, list) else [value]
    single = any(getattr(value, "dtype", None) == np.float32 for value in arrays)
    return SINGLE if single else DOUBLE
