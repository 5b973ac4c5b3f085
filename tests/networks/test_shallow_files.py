from __future__ import annotations

import json

import numpy as np
import pytest

from featavg import InputError
from featavg.networks.activation import LeakyReLU
from featavg.networks.safetensors import read_safetensors
from featavg.networks.shallow import ShallowNet
from featavg.networks.shallow_files import read_shallow

RNG = np.random.default_rng(0)
W, B, A, C = (RNG.normal(size=size) for size in ((5, 3), 5, (4, 5), 4))
NAMED = {"W": W, "b": B, "A": A, "c": C}
TORCH = {"0.weight": W, "0.bias": B, "2.weight": A, "2.bias": C}
X = RNG.normal(size=(40, 3)) * 3


def npz(folder, arrays):
    np.savez(folder / "model.npz", **arrays)
    return folder / "model.npz"


KINDS = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "|b1": "BOOL"}


def encoded(arrays):
    """Return arrays in the format of safetensors."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in arrays.items():
        array = np.asarray(value)
        place = [len(data), len(data) + array.nbytes]
        kind = KINDS[array.dtype.str]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": place}
        data += array.tobytes()
    return with_header(json.dumps(header).encode(), data)


def with_header(header, data=b""):
    return len(header).to_bytes(8, "little") + header + data


def safetensors(folder, arrays):
    (folder / "model.safetensors").write_bytes(encoded(arrays))
    return folder / "model.safetensors"


def outputs(net):
    return net.outputs(X)


@pytest.mark.parametrize("write", [npz, safetensors])
@pytest.mark.parametrize("arrays", [NAMED, TORCH, dict(reversed(TORCH.items()))])
def test_two_layers(write, arrays, tmp_path):
    net = read_shallow(write(tmp_path, arrays))
    assert (outputs(net) == outputs(ShallowNet(W, B, A, C))).all()


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_smaller_types(kind, tmp_path):
    arrays = {name: array.astype(kind) for name, array in NAMED.items()}
    net = read_shallow(safetensors(tmp_path, arrays))
    assert (net.weights == W.astype(kind)).all()
    assert net.weights.dtype == np.float64


def test_bfloat16(tmp_path):
    bits = np.array([0x3F80, 0xC000], dtype="<u2")  # 1 and -2
    header = {"w": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]}}
    (tmp_path / "m").write_bytes(with_header(json.dumps(header).encode(), bits.tobytes()))
    assert read_safetensors(tmp_path / "m", most=100)["w"].tolist() == [[1.0, -2.0]]


def test_a_file_of_the_library_itself(tmp_path):
    """As safetensors 0.8 writes these arrays, padding included."""
    header = (
        b'{"__metadata__":{"format":"pt"},"2.weight":{"dtype":"F64","shape":[1,2],"data_offsets":'
        b'[0,16]},"0.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]},"0.bias":{"dtype"'
        b':"F16","shape":[2],"data_offsets":[24,28]}}     '
    )
    data = b"\0\0\0\0\0\0\xf0?\0\0\0\0\0\0\0\xc0\0\0\0?\0\0@@\0\0\0<"
    assert len(header) == 0xE0
    (tmp_path / "model.safetensors").write_bytes(with_header(header, data))
    net = read_shallow(tmp_path / "model.safetensors")
    assert net.weights.tolist() == [[0.5], [3.0]]
    assert net.biases.tolist() == [0.0, 1.0]
    assert net.second_layer.tolist() == [[0.0, 0.0], [1.0, -2.0]]


def test_settings(tmp_path):
    mean, scale = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 10.0])
    settings = {"labels": ["a", "b", "c", "d"], "mean": mean, "scale": scale, "leak": 0.25}
    past = RNG.normal(size=(4, 3))
    net = read_shallow(npz(tmp_path, NAMED | settings | {"linear": past}))
    own = ShallowNet(W, B, A, C, activation=LeakyReLU(0.25), linear=past, labels=settings["labels"])
    np.testing.assert_allclose(outputs(net), own.outputs((X - mean) / scale), rtol=1e-12)
    assert (net.predict(X) == own.predict((X - mean) / scale)).all()


@pytest.mark.parametrize(
    "arrays",
    [
        {"linear": W, "c": B},
        {"weight": W, "bias": B},
        {"fc.weight": W, "fc.bias": B},
        {"linear": W, "c": B, "mean": 0.0},
    ],
)
def test_linear_networks(arrays, tmp_path):
    net = read_shallow(npz(tmp_path, arrays))
    np.testing.assert_allclose(outputs(net), W @ X.T + B[:, None], rtol=1e-12, atol=1e-12)


def test_biases_that_are_missing_or_one_number(tmp_path):
    expected = outputs(ShallowNet(W, np.zeros(5), A, np.zeros(4)))
    for arrays in ({"0.weight": W, "2.weight": A}, NAMED | {"b": 0.0, "c": 0}):
        assert (outputs(read_shallow(npz(tmp_path, arrays))) == expected).all()


def test_layers_that_fit_in_both_orders_are_ordered_by_their_numbers(tmp_path):
    one, two = RNG.normal(size=(2, 3, 3))
    for first, second in (("2", "10"), ("net.fc1", "net.fc2")):
        path = npz(tmp_path, {f"{second}.weight": two, f"{first}.weight": one})
        assert (read_shallow(path).weights == one).all()
    with pytest.raises(InputError, match="so name them W, b, A and c"):
        read_shallow(npz(tmp_path, {"inner.weight": one, "outer.weight": two}))


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({}, "model.npz holds none of these"),
        ({"X": X, "y": X[:, 0]}, "must hold the arrays W, b, A and c.*; model.npz holds X, y"),
        ({"W": W, "A": A}, "holds W, A"),
        (NAMED | {"V": W}, "holds W, b, A, c, V"),
        (TORCH | {"linear": W}, "holds .*linear"),
        (TORCH | {"1.running_mean": B}, "holds .*1.running_mean"),
        (TORCH | {"1.weight": B, "1.bias": B}, r"1.weight must be a matrix; got the shape \(5,\)"),
        (TORCH | {"4.weight": A[:, :4], "4.bias": C}, "one hidden layer, .*has 3 layers"),
        ({"0.weight": W, "2.weight": A[:, :4]}, r"0.weight \(5, 3\) and 2.weight \(4, 4\)"),
        ({"0.weight": W, "3.bias": B}, "model.npz has only 3.bias"),
        (NAMED | {"W": np.array([["a"]])}, "W must hold real numbers"),
        (NAMED | {"W": W * 1j}, "W must hold real numbers"),
        (NAMED | {"W": W[0]}, "W must be a matrix"),
        (NAMED | {"W": W * np.nan}, "W must be finite; got nan"),
        (NAMED | {"b": B[:2]}, r"b must be a vector of length 5; got the shape \(2,\)"),
        (NAMED | {"A": A.T}, "c must be a vector of length 5"),
        (NAMED | {"A": A[:, :2]}, "A must have one column for each of the 5 neurons"),
        (NAMED | {"linear": W}, "linear must have the shape"),
        (NAMED | {"labels": [1, 2]}, "one label for each of the 4 outputs"),
        (NAMED | {"labels": [[1, 2, 3, 4]]}, "labels must be a vector"),
        (NAMED | {"labels": [1, 2, 3, np.nan]}, "labels must be finite"),
        (NAMED | {"labels": np.array(["2020-01-01"] * 4, dtype="M8[D]")}, "labels must be a vec"),
        (NAMED | {"labels": np.array(["a"] * 4, dtype=object)}, "labels must hold numbers or text"),
        (
            NAMED | {"W": W.astype(object)},
            "W must hold numbers or text; got an array of",
        ),
        (NAMED | {"scale": [1.0, 0.0, 1.0]}, "scale must not hold 0"),
        (NAMED | {"scale": 1e-320}, "must be finite; got .*inf"),
        (NAMED | {"mean": [1.0]}, "mean must be a vector of length 3"),
        (NAMED | {"leak": -1.0}, "leak must be at least 0"),
        (NAMED | {"leak": [1.0, 2.0]}, "leak must be one number"),
        ({"linear": W, "c": B, "leak": 0.1}, "leak must not be given"),
        ({"W": np.zeros((0, 3)), "b": [], "A": np.zeros((0, 0)), "c": []}, "at least one row"),
    ],
)
def test_other_arrays_are_refused(arrays, reason, tmp_path):
    with pytest.raises(InputError, match=reason) as error:
        read_shallow(npz(tmp_path, arrays))
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def entry(**changes):
    return {"dtype": "F64", "shape": [1, 3], "data_offsets": [0, 24]} | changes


def headed(entries, data=bytes(24)):
    return with_header(json.dumps(entries).encode(), data)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its header must .* be in the file; got 0 bytes"),
        (b"\xff" * 8, "its header must have at most 1,048,576 bytes"),
        ((1 << 20).to_bytes(8, "little") + b"{}", "and be in the file; got 1,048,576 bytes"),
        ((1 << 19).to_bytes(8, "little") + b" " * 100, "and be in the file"),
        (with_header(b"not json"), "not valid JSON"),
        (with_header(b"[" * 100_000), "not valid JSON"),
        (with_header(b'{"a": NaN}'), "not valid JSON"),
        (with_header(b"[1]"), "must be a JSON object"),
        (headed({"W": 3}), "'W' must have a type, a shape and a place"),
        (headed({"W": {}}), "'W' must have a type"),
        (headed({"W": entry(data_offsets=[0, 8, 16])}), "'W' must have a type"),
        (headed({"W": entry(dtype="F8_E4M3")}), "one of the types F64.*; got 'F8_E4M3'"),
        (headed({"W": entry(dtype=["F64"])}), "one of the types"),
        (headed({"W": entry(shape=[-1, -3])}), "of whole numbers"),
        (headed({"W": entry(shape=[True, 3])}), "of whole numbers"),
        (headed({"W": entry(shape=3)}), "of whole numbers"),
        (headed({"W": entry(shape=[1 << 61, 1 << 61])}), "not have the size that it states"),
        (headed({"W": entry(shape=[1] * 40 + [3])}), "at most 32 dimensions; got 41"),
        (headed({"W": entry(shape=[2] * 300_000)}), "at most 32 dimensions; got 300,000"),
        (headed({"W": entry()}, bytes(23)), "be in the file"),
        (headed({"W": entry()}, bytes(32)), "must end with its last array"),
        (headed({"W": entry(), "V": entry()}), "'V' must follow|'W' must follow"),
        (headed({"W": entry(data_offsets=[8, 32])}, bytes(32)), "'W' must follow the array before"),
        (encoded(NAMED)[:-3], "be in the file"),
    ],
)
def test_damaged_safetensors(content, reason, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=reason) as error:
        read_shallow(tmp_path / "model.safetensors")
    assert str(error.value).startswith("cannot read model.safetensors: ")


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"must end in .npz or .safetensors; got model.pkl"):
        read_shallow(tmp_path / "model.pkl")
    for suffix in (".npz", ".safetensors"):
        with pytest.raises(InputError, match="no such file"):
            read_shallow(tmp_path / f"missing{suffix}")
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(InputError, match="it must be an ordinary file"):
            read_shallow(tmp_path / f"folder{suffix}")
    with pytest.raises(InputError, match=r"it must have at most 0.0001 MB"):
        read_safetensors(safetensors(tmp_path, NAMED), most=100)
    whole = npz(tmp_path, NAMED).read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut.npz must be a whole file of arrays"):
        read_shallow(tmp_path / "cut.npz")
