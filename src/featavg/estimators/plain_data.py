"""Fitted estimators as plain data: a description that JSON can hold, and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.array_files import Arrays, Expected
from featavg.errors import InputError
from featavg.estimators.frontier import Frontier
from featavg.estimators.heads import CertifiedHead, Head
from featavg.estimators.pieces import PieceHead, SortedPairs
from featavg.estimators.scaling import Scaling
from featavg.estimators.subclasses import Subclasses
from featavg.networks import plain_data
from featavg.reading import at_most, one_of, read_as

FORMAT = "featavg estimator 5"
_LABEL_KINDS = "biufU"
_FRONTIER_ARRAYS = ("values", "accuracy", "radius")
_MOST_STEPS = 10**18


@dataclass(frozen=True)
class _FrontierNumbers:
    """What a frontier has besides its arrays."""

    points: int
    radius_points: int
    held_out: bool
    robustness: float
    knob: str = one_of(("steps", "margin"), "steps")
    effective_points: float | None = None


@dataclass(frozen=True)
class _Numbers:
    """Numbers that `fit` sets; which ones depends on the estimator."""

    n_iter_: int | None = at_most(_MOST_STEPS, None)
    learning_rate_: float | None = None
    margin_: float | None = None


def describe(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return a fitted estimator as a description that JSON can hold, and arrays."""
    head, frontier, scaling = estimator.head_, estimator.frontier_, estimator.scaling_
    network, network_arrays = _describe_head(head)
    about: dict[str, Any] = {
        "format": FORMAT,
        "kind": type(estimator).__name__,
        "parameters": [[k, _plain(v)] for k, v in estimator.get_params(deep=False).items()],
        "object_classes": estimator.classes_.dtype == object,
        "numbers": {f.name: _plain(getattr(estimator, f.name, None)) for f in fields(_Numbers)},
        "frontier": {f.name: _plain(getattr(frontier, f.name)) for f in fields(_FrontierNumbers)},
        "head": network,
    }
    arrays: Arrays = {
        "classes": _labels(estimator.classes_),
        "shift": scaling.shift,
        "factor": np.asarray(scaling.factor),
        **network_arrays,
        **{f"frontier_{name}": getattr(frontier, name) for name in _FRONTIER_ARRAYS},
    }
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names"] = _labels(estimator.feature_names_in_)
    if hasattr(estimator, "subclasses_"):
        found = estimator.subclasses_
        about["names"] = [_plain(name) for name in found.names]
        about["strength"] = _plain(found.strength)
        arrays["subclass_labels"] = found.labels
    return about, arrays


def expected_arrays(about: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Expected]:
    """Return the arrays of an estimator of this description, of which a file has `found`."""
    per_coordinate = len(found["factor"].shape) if "factor" in found else 0
    expected = {
        "classes": Expected(_LABEL_KINDS, (None,)),
        "shift": Expected("f", (None,)),
        "factor": Expected("f", (None,) if per_coordinate else ()),
        "class_of": Expected("i", (None,)),
        "feature_names": Expected("U", (None,), required=False),
        "subclass_labels": Expected("i", (None,), required=False),
        "frontier_values": Expected("iuf", (None,)),
        "frontier_accuracy": Expected("f", (None,)),
        "frontier_radius": Expected("f", (None,)),
    }
    if about["head"]["kind"] == "PieceHead":
        return expected | {
            "pieces": Expected("f", (None, None)),
            "piece_biases": Expected("f", (None,)),
            "rotation": Expected("f", (None, None), required=False),
            "rotation_biases": Expected("f", (None,), required=False),
        }
    return expected | {
        "weights": Expected("f", (None, None)),
        "biases": Expected("f", (None,)),
        "second_layer": Expected("f", (None,), required=False),
    }


def _describe_head(head: CertifiedHead) -> tuple[dict[str, Any], Arrays]:
    """Return a head as a description and arrays; refuse one of an unknown kind."""
    if isinstance(head, PieceHead):
        about = {"kind": "PieceHead", "sharpness": head.sharpness}
        arrays: Arrays = {
            "pieces": head.weights,
            "piece_biases": head.biases,
            "class_of": head.class_of,
        }
        if head.features is not None:
            arrays["rotation"] = head.features.weights
            arrays["rotation_biases"] = head.features.biases
        return about, arrays
    if not isinstance(head, Head):
        raise InputError(f"only a Head or a PieceHead can be saved; got {head!r}.")
    network, arrays = plain_data.describe(head.net)
    return {"kind": "Head", "network": network}, {**arrays, "class_of": head.class_of}


def _restore_head(about: Mapping[str, Any], arrays: Arrays) -> CertifiedHead:
    """Return the head that `_describe_head` described."""
    if about["kind"] == "Head":
        return Head(plain_data.restore(about["network"], arrays), arrays["class_of"])
    if about["kind"] != "PieceHead":
        raise ValueError("it has a classifier of another kind")
    features = None
    if "rotation" in arrays:
        features = SortedPairs(arrays["rotation"], arrays["rotation_biases"])
    head = PieceHead(
        arrays["pieces"],
        arrays["piece_biases"],
        arrays["class_of"],
        features,
        float(about["sharpness"]),
    )
    _check_pieces(head)
    return head


def _check_pieces(head: PieceHead) -> None:
    """Refuse pieces whose arrays are not numbers, or do not fit together."""
    rotation = head.features
    numbers = [head.weights, head.biases]
    numbers += [] if rotation is None else [rotation.weights, rotation.biases]
    if not all(a.dtype == np.float64 and np.isfinite(a).all() for a in numbers):
        raise ValueError("its pieces are not numbers")
    count = len(head.weights)
    fits = (
        head.weights.ndim == 2
        and head.biases.shape == (count,)
        and head.class_of.shape == (count,)
        and head.class_of.dtype.kind == "i"
        and np.array_equal(np.unique(head.class_of), np.arange(head.classes))
        and (np.diff(head.class_of) >= 0).all()
        and np.isfinite(head.sharpness)
        and head.sharpness > 0
    )
    if fits and rotation is not None:
        size = head.weights.shape[1]
        fits = (
            size % 2 == 0
            and rotation.weights.ndim == 2
            and len(rotation.weights) == size
            and rotation.biases.shape == (size,)
        )
    if not fits:
        raise ValueError("its parts do not fit together")


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; a mapping as a list of pairs."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
    return value


def _labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as an array that needs no pickle."""
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    if labels.dtype.kind not in _LABEL_KINDS:
        raise InputError(
            f"classes must be numbers or strings to be saved; got {labels.dtype} labels."
        )
    return labels


def _value(plain: Any) -> Any:
    """Return the value that `_plain` made plain."""
    return {k: v for k, v in plain["pairs"]} if isinstance(plain, dict) else plain  # noqa: C416


def parameters_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the constructor."""
    return {name: _value(plain) for name, plain in about["parameters"]}


def restore(estimator: Any, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Set what `fit` sets, from what `describe` returned; refuse parts that do not fit together."""
    classes = arrays["classes"]
    estimator.classes_ = classes.astype(object) if about["object_classes"] else classes
    _check_classes(arrays["class_of"], len(classes))
    factor = arrays["factor"]
    estimator.scaling_ = Scaling(arrays["shift"], factor if factor.ndim else factor.item())
    estimator.head_ = _restore_head(about["head"], arrays)
    curves: dict[str, Any] = {name: arrays[f"frontier_{name}"] for name in _FRONTIER_ARRAYS}
    numbers = read_as(_FrontierNumbers, "frontier", about["frontier"])
    estimator.frontier_ = Frontier(**curves, **vars(numbers))
    for name, value in vars(read_as(_Numbers, "numbers", about["numbers"])).items():
        if value is not None:
            setattr(estimator, name, value)
    estimator.n_features_in_ = len(estimator.scaling_.shift)
    if "feature_names" in arrays:
        estimator.feature_names_in_ = arrays["feature_names"].astype(object)
    if "subclass_labels" in arrays:
        estimator.subclasses_ = _subclasses(estimator, about, arrays)
    _check_shapes(estimator)


def _subclasses(estimator: Any, about: Mapping[str, Any], arrays: Arrays) -> Subclasses:
    class_of, labels, names = arrays["class_of"], arrays["subclass_labels"], tuple(about["names"])
    strength: dict[Any, Any] = {
        name: np.array(values, dtype=np.float64)
        for name, values in _value(about["strength"]).items()
    }
    sizes = np.bincount(class_of).tolist()
    counts = dict(zip(estimator.classes_.tolist(), sizes, strict=True))
    within = not len(labels) or (labels.min() >= -1 and labels.max() < len(class_of))
    if len(names) != len(class_of) or not within:
        raise ValueError("its parts do not fit together")
    return Subclasses(counts, labels, class_of, names, strength)


def _check_classes(class_of: NDArray[Any], classes: int) -> None:
    """Refuse numbers of classes that do not exist: arrays as long as the largest one follow."""
    if not len(class_of) or class_of.min() < 0 or class_of.max() >= classes:
        raise ValueError(f"its class_of must be numbers below {classes}, that of its classes")


def _check_shapes(estimator: Any) -> None:
    """Refuse parts that do not fit together."""
    head, frontier, features = estimator.head_, estimator.frontier_, estimator.n_features_in_
    fits = (
        _fits(head, features)
        and head.classes == len(estimator.classes_)
        and np.isfinite(estimator.scaling_.shift).all()
        and frontier.values.shape == frontier.accuracy.shape == frontier.radius.shape
        and len(getattr(estimator, "feature_names_in_", estimator.scaling_.shift)) == features
    )
    if not fits:
        raise ValueError("its parts do not fit together")


def _fits(head: Head | PieceHead, features: int) -> bool:
    """Return whether a head takes so many features and has a group for each of its classes."""
    if isinstance(head, PieceHead):
        first = head if head.features is None else head.features
        return first.weights.shape[1] == features
    groups = max(head.net.output_count, 2)
    return (
        head.net.dim == features
        and head.class_of.shape == (groups,)
        and np.array_equal(np.unique(head.class_of), np.arange(head.classes))
    )
