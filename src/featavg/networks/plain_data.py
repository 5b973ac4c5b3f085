"""Networks as plain data and arrays, for files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.activation import ACTIVATIONS, Activation
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet


def describe(net: TwoLayerNet) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Return a network as a description that JSON can hold, and arrays; or refuse it."""
    activation = type(net.activation).__name__
    if ACTIVATIONS.get(activation) is not type(net.activation):
        raise InputError(
            f"only the activations {', '.join(ACTIVATIONS)} can be saved; got {net.activation!r}."
        )
    about: dict[str, Any] = {
        "kind": type(net).__name__,
        "activation": [activation, asdict(net.activation)],
    }
    arrays = {"weights": net.weights, "biases": net.biases}
    if isinstance(net, MultiClassNet):
        about |= {"classes": net.classes, "positive": list(net.positive), "readout": net.readout}
        about["has_biases"] = net.has_biases
    elif isinstance(net, BinaryNet):
        arrays["second_layer"] = net.second_layer[0]
        about |= {"train_biases": net.has_biases, "train_second_layer": net.trains_second_layer}
    else:
        raise InputError(f"only a BinaryNet or a MultiClassNet can be saved; got {net!r}.")
    return about, arrays


def restore(about: Mapping[str, Any], arrays: Mapping[str, Any]) -> TwoLayerNet:
    """Return the network that `describe` described; nothing in the data is executed."""
    name, fields = about["activation"]
    activation: Activation = ACTIVATIONS[name](**fields)
    weights, biases = arrays["weights"], arrays["biases"]
    if about["kind"] == "MultiClassNet":
        own = biases if about["has_biases"] else None
        shape = about["classes"], about["positive"], about["readout"]
        return MultiClassNet(weights, *shape, own, activation=activation)
    if about["kind"] != "BinaryNet":
        raise ValueError("it has a network of another kind")
    return BinaryNet(
        weights,
        biases,
        second_layer=arrays["second_layer"],
        activation=activation,
        train_biases=about["train_biases"],
        train_second_layer=about["train_second_layer"],
    )
