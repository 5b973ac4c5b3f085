"""Tensors that TensorFlow.js saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from featavg import InputError
from featavg.datasets.tfjs import read_tensors

KERNEL = np.arange(12, dtype="<f4").reshape(2, 3, 2)
BIAS = np.array([-1.5, 2.5], dtype="<f4")
CONTENT = KERNEL.tobytes() + BIAS.tobytes()


def model(**changes):
    weights = [
        {"name": "fc/kernel", "shape": [2, 3, 2], "dtype": "float32"},
        {"name": "fc/bias", "shape": [2], "dtype": "float32"},
    ]
    group = {"paths": ["b", "a"], "weights": weights}
    return {"format": "layers-model", "weightsManifest": [group]} | changes


def read(described, content=CONTENT, at=17):
    shards = {"a": content[at:], "b": content[:at]}
    return read_tensors("it", json.dumps(described).encode(), shards)


@pytest.mark.parametrize("at", [0, 3, 48, 56])
def test_shards_are_joined_in_the_order_of_the_manifest(at):
    found = read(model(), at=at)
    assert list(found) == ["fc/kernel", "fc/bias"]
    np.testing.assert_array_equal(found["fc/kernel"], KERNEL)
    np.testing.assert_array_equal(found["fc/bias"], BIAS)
    assert found["fc/bias"].dtype == np.float32


def test_several_groups():
    first, second = model()["weightsManifest"][0]["weights"]
    groups = [{"paths": ["b"], "weights": [first]}, {"paths": ["a"], "weights": [second]}]
    found = read(model(weightsManifest=groups), at=48)
    np.testing.assert_array_equal(found["fc/bias"], BIAS)
    with pytest.raises(InputError, match="its shards are longer than its tensors"):
        read(model(weightsManifest=groups), at=52)


def weight(**changes):
    described = model()
    described["weightsManifest"][0]["weights"][1] |= changes
    return described


@pytest.mark.parametrize(
    ("described", "sentence"),
    [
        ([], "TypeError"),
        (model(format="graph-model"), "its format is 'graph-model'"),
        (model(weightsManifest=[{"paths": ["c"], "weights": []}]), "KeyError: 'c'"),
        (model(weightsManifest=[{"paths": ["b", "b"], "weights": []}]), "KeyError: 'b'"),
        (model(weightsManifest=[{"paths": [], "weights": []}]), "does not name a"),
        (weight(dtype="int32"), "'fc/bias' is not of float32"),
        (weight(quantization={"dtype": "uint8"}), "'fc/bias' is not of float32"),
        (weight(name="fc/kernel"), "two of its tensors are called fc/kernel"),
        (weight(shape=[3]), "its shards end within 'fc/bias'"),
        (weight(shape=[10**9, 10**9]), "its shards end within 'fc/bias'"),
        (weight(shape=[1]), "its shards are longer than its tensors"),
        (weight(shape=[-2]), "'fc/bias' has the shape"),
        (weight(shape=[2.0]), "'fc/bias' has the shape"),
        (weight(shape=[1] * 9), "'fc/bias' has the shape"),
        (weight(shape=2), "TypeError"),
        (weight(shape=None), "TypeError"),
    ],
)
def test_what_is_no_such_network(described, sentence):
    with pytest.raises(InputError, match=f"it must be a layers model of .*{sentence}"):
        read(described)


def test_values_that_are_not_finite_and_no_json():
    content = KERNEL.tobytes() + np.array([np.nan, 0], dtype="<f4").tobytes()
    with pytest.raises(InputError, match="'fc/bias' has values that are not finite"):
        read(model(), content)
    with pytest.raises(InputError, match="its description is not valid JSON"):
        read_tensors("it", b"{", {})
