"""Keeping fitted estimators in files that cannot run code."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featavg.errors import InputError
from featavg.estimators._base import HeadClassifier
from featavg.estimators.averaging import AveragingClassifier
from featavg.estimators.decoupled import DecoupledClassifier
from featavg.estimators.frontier import Frontier
from featavg.estimators.heads import Head
from featavg.estimators.scaling import Scaling
from featavg.estimators.subclasses import Subclasses
from featavg.files import write_atomically
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet

_FORMAT = "featavg estimator 1"
_KINDS: dict[str, type[HeadClassifier]] = {
    kind.__name__: kind for kind in (AveragingClassifier, DecoupledClassifier)
}
_LABEL_KINDS = "biufU"
Arrays = dict[str, NDArray[Any]]


def save(estimator: HeadClassifier, path: str | Path) -> None:
    """Write a fitted estimator: an npz of plain arrays, one of which is a header in JSON.

    What is not kept: a `random_state` that is not a number, and Python types of labels beyond
    numbers and strings.
    """
    about, arrays = _describe(estimator)
    try:
        header = json.dumps(about)
    except (TypeError, ValueError) as error:
        raise InputError(f"parameters must be numbers or strings to be saved; {error}.") from None
    arrays["header"] = np.frombuffer(header.encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomically(Path(path), buffer.getbuffer())


def load(path: str | Path) -> AveragingClassifier | DecoupledClassifier:
    """Read an estimator that `save` wrote. Nothing in the file is executed.

    Examples
    --------
    >>> import tempfile
    >>> from featavg.estimators import AveragingClassifier, load
    >>> model = AveragingClassifier(random_state=0).fit(np.eye(8), [0, 1] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/model.npz")
    ...     again = load(folder + "/model.npz")
    >>> bool((again.predict_radius(np.eye(8)) == model.predict_radius(np.eye(8))).all())
    True
    """
    path = Path(path)
    try:
        arrays = _read(path)
        about = json.loads(arrays.pop("header").tobytes().decode())
        if about.get("format") != _FORMAT:
            raise ValueError("another format")
        return _rebuild(about, arrays)
    except OSError as error:
        raise InputError(f"cannot read {path.name}: {error.strerror or error}.") from None
    except InputError:
        raise
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        EOFError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise InputError(f"{path.name} is not a saved featavg estimator; {error}.") from None


def _read(path: Path) -> Arrays:
    """Read arrays whose size is what the file says, and no more: no pickle, no compression."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size > path.stat().st_size:
                raise ValueError("its parts must not be compressed")
            content = io.BytesIO(archive.read(info))
            version = np.lib.format.read_magic(content)
            if version != (1, 0):
                raise ValueError("an array has an unknown version")
            shape, _, dtype = np.lib.format.read_array_header_1_0(content)
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            if dtype.hasobject or size != info.file_size - content.tell():
                raise ValueError("an array does not have the size it says")
            content.seek(0)
            arrays[info.filename.removesuffix(".npy")] = np.load(content, allow_pickle=False)
    return arrays


# --- to plain data


def _describe(estimator: HeadClassifier) -> tuple[dict[str, Any], Arrays]:
    head, frontier, scaling = estimator.head_, estimator.frontier_, estimator.scaling_
    net = head.net
    about: dict[str, Any] = {
        "format": _FORMAT,
        "kind": type(estimator).__name__,
        "parameters": [[k, _plain(v)] for k, v in estimator.get_params(deep=False).items()],
        "object_classes": estimator.classes_.dtype == object,
        "factor": scaling.factor,
        "steps": int(estimator.n_iter_),
        "learning_rate": float(estimator.learning_rate_),
        "frontier": [
            frontier.points,
            frontier.radius_points,
            frontier.held_out,
            float(frontier.robustness),
        ],
        "network": None,
    }
    if isinstance(net, MultiClassNet):
        about["network"] = [net.classes, list(net.positive), net.readout]
    arrays: Arrays = {
        "classes": _labels(estimator.classes_),
        "shift": scaling.shift,
        "weights": net.weights,
        "biases": net.biases,
        "class_of": head.class_of,
        "frontier_steps": frontier.steps,
        "frontier_accuracy": frontier.accuracy,
        "frontier_radius": frontier.radius,
    }
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names"] = _labels(estimator.feature_names_in_)
    if isinstance(estimator, DecoupledClassifier):
        found = estimator.subclasses_
        about["names"] = [_plain(name) for name in found.names]
        about["strength"] = [
            None if name not in found.strength else found.strength[name].tolist()
            for name in found.counts
        ]
        arrays["subclass_labels"] = found.labels
    return about, arrays


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; a mapping as a list of pairs."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, np.generic):
        return value.item()
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


# --- and back


def _rebuild(about: dict[str, Any], arrays: Arrays) -> AveragingClassifier | DecoupledClassifier:
    parameters: dict[str, Any] = {
        name: {k: v for k, v in value["pairs"]} if isinstance(value, dict) else value  # noqa: C416
        for name, value in about["parameters"]
    }
    estimator: Any = _KINDS[about["kind"]](**parameters)
    classes = arrays["classes"]
    estimator.classes_ = classes.astype(object) if about["object_classes"] else classes
    estimator.scaling_ = Scaling(arrays["shift"], float(about["factor"]))
    estimator.head_ = _head(about, arrays)
    points, radius_points, held_out, robustness = about["frontier"]
    estimator.frontier_ = Frontier(
        arrays["frontier_steps"],
        arrays["frontier_accuracy"],
        arrays["frontier_radius"],
        int(points),
        int(radius_points),
        bool(held_out),
        float(robustness),
    )
    estimator.n_iter_, estimator.learning_rate_ = int(about["steps"]), float(about["learning_rate"])
    estimator.n_features_in_ = len(estimator.scaling_.shift)
    if "feature_names" in arrays:
        estimator.feature_names_in_ = arrays["feature_names"].astype(object)
    if isinstance(estimator, DecoupledClassifier):
        estimator.subclasses_ = _subclasses(estimator, about, arrays)
    _check_shapes(estimator)
    return estimator


def _head(about: dict[str, Any], arrays: Arrays) -> Head:
    weights, biases = arrays["weights"], arrays["biases"]
    if about["network"] is None:
        return Head(BinaryNet(weights, biases), arrays["class_of"])
    groups, positive, readout = about["network"]
    net = MultiClassNet(weights, groups, positive, readout, biases)
    return Head(net, arrays["class_of"])


def _subclasses(
    estimator: DecoupledClassifier, about: dict[str, Any], arrays: Arrays
) -> Subclasses:
    class_of = arrays["class_of"]
    names = estimator.classes_.tolist()
    strength = {
        name: np.array(values)
        for name, values in zip(names, about["strength"], strict=True)
        if values is not None
    }
    counts = dict(zip(names, np.bincount(class_of).tolist(), strict=True))
    return Subclasses(counts, arrays["subclass_labels"], class_of, tuple(about["names"]), strength)


def _check_shapes(estimator: HeadClassifier) -> None:
    """Refuse parts that do not fit together."""
    head, frontier = estimator.head_, estimator.frontier_
    groups = head.net.classes if isinstance(head.net, MultiClassNet) else 2
    fits = (
        head.net.dim == estimator.n_features_in_
        and estimator.scaling_.shift.ndim == 1
        and head.class_of.shape == (groups,)
        and np.array_equal(np.unique(head.class_of), np.arange(len(estimator.classes_)))
        and frontier.steps.shape == frontier.accuracy.shape == frontier.radius.shape
        and frontier.steps.ndim == 1
        and len(getattr(estimator, "feature_names_in_", estimator.scaling_.shift)) == head.net.dim
    )
    if not fits:
        raise ValueError("its parts do not fit together")
