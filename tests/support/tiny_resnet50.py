"""A tiny ResNet-50 as TensorFlow.js saves one, and Keras's layers in NumPy, as its oracle.

The network has the layers of the published one, with very few channels.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from featavg.datasets.weights import RESNET50, Weights
from support import tiny_datasets

BLOCKS = {2: "abc", 3: "abcd", 4: "abcdef", 5: "abc"}
INNER, OUTER = {2: 2, 3: 3, 4: 2, 5: 3}, {2: 4, 3: 5, 4: 4, 5: 6}
CLASSES = 7
SHARDS = ("group1-shard1of3.bin", "group1-shard2of3.bin", "group1-shard3of3.bin")


class _Writer:
    """Writes layers as Keras describes them, and draws their tensors."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.layers, self.tensors = rng, [], {}

    def layer(self, kind: str, name: str, inputs: list[str], **config: Any) -> str:
        nodes = [[[each, 0, 0, {}] for each in inputs]] if inputs else []
        self.layers.append(
            {"class_name": kind, "name": name, "config": config, "inbound_nodes": nodes}
        )
        return name

    def convolution(self, names: tuple[str, str], source: str, shape, **config: Any) -> str:
        """Write a convolution and the normalisation after it."""
        (name, norm), outputs = names, shape[-1]
        scale = np.sqrt(2 / np.prod(shape[:3]))
        self.tensors[f"{name}/kernel"] = scale * self.rng.standard_normal(shape)
        self.tensors[f"{name}/bias"] = 0.3 * self.rng.standard_normal(outputs)
        for what in ("beta", "moving_mean"):
            self.tensors[f"{norm}/{what}"] = 0.3 * self.rng.standard_normal(outputs)
        # some of the size of epsilon, so that another epsilon would give something else
        variance = self.rng.uniform(0.001, 0.1, outputs)
        self.tensors[f"{norm}/moving_variance"] = variance
        self.tensors[f"{norm}/gamma"] = self.rng.uniform(0.3, 0.9, outputs) * np.sqrt(variance)
        self.layer("Conv2D", name, [source], kernel_size=shape[:2], **config)
        return self.layer("BatchNormalization", norm, [name], epsilon=0.001)

    def relu(self, source: str) -> str:
        return self.layer("Activation", f"{source}_relu", [source], activation="relu")

    def block(self, name: str, source: str, widths: tuple[int, int, int], stride: int) -> str:
        outside, inner, outer = widths
        strides, once = [stride, stride], [1, 1]

        def names(part: str) -> tuple[str, str]:
            return f"res{name}_branch{part}", f"bn{name}_branch{part}"

        valid, same = {"padding": "valid"}, {"padding": "same"}
        x = self.convolution(names("2a"), source, (1, 1, outside, inner), strides=strides, **valid)
        shape = (3, 3, inner, inner)
        x = self.convolution(names("2b"), self.relu(x), shape, strides=once, **same)
        x = self.convolution(names("2c"), self.relu(x), (1, 1, inner, outer), strides=once, **valid)
        if name.endswith("a"):
            shape = (1, 1, outside, outer)
            source = self.convolution(names("1"), source, shape, strides=strides, **valid)
        return self.relu(self.layer("Add", f"add{name}", [x, source]))


def network(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the layers of a tiny network, as in ``model_config``, and its tensors."""
    made = _Writer(rng)
    x = made.layer("InputLayer", "input_1", [])
    x = made.layer("ZeroPadding2D", "conv1_pad", [x], padding=[[3, 3], [3, 3]])
    shape = (7, 7, 3, 3)
    x = made.convolution(("conv1", "bn_conv1"), x, shape, strides=[2, 2], padding="valid")
    x = made.layer("ZeroPadding2D", "pool1_pad", [made.relu(x)], padding=[[1, 1], [1, 1]])
    x = made.layer("MaxPooling2D", "pool", [x], pool_size=[3, 3], strides=[2, 2], padding="valid")
    channels = 3
    for stage, letters in BLOCKS.items():
        for letter in letters:
            stride = 2 if stage > 2 and letter == "a" else 1
            x = made.block(f"{stage}{letter}", x, (channels, INNER[stage], OUTER[stage]), stride)
            channels = OUTER[stage]
    x = made.layer("GlobalAveragePooling2D", "avg_pool", [x])
    made.layer("Dense", "fc1000", [x], activation="softmax")
    made.tensors["fc1000/kernel"] = 0.02 * rng.standard_normal((channels, CLASSES))
    made.tensors["fc1000/bias"] = rng.standard_normal(CLASSES)
    tensors = {name: made.tensors[name].astype(np.float32) for name in sorted(made.tensors)}
    return {"layers": made.layers}, tensors


def saved(layers: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, bytes]:
    """Return the files of a network; shards end within tensors."""
    content = b"".join(tensor.tobytes() for tensor in tensors.values())
    ends = [0, 1001, 3005, len(content)]
    weights = [
        {"name": name, "shape": list(tensor.shape), "dtype": "float32"}
        for name, tensor in tensors.items()
    ]
    model = {
        "format": "layers-model",
        "modelTopology": {"model_config": {"class_name": "Model", "config": layers}},
        "weightsManifest": [{"paths": list(SHARDS), "weights": weights}],
    }
    labels = {str(i): f"class {i}" for i in range(CLASSES)}
    shards = {
        f"ResNet50/{name}": content[start:stop]
        for name, start, stop in zip(SHARDS, ends, ends[1:], strict=False)
    }
    named = {"ResNet50/model.json": model, "assets/labels.json": labels}
    return {name: json.dumps(value).encode() for name, value in named.items()} | shards


def package(files: dict[str, bytes]) -> bytes:
    """Return the tarball of the package, with its shards in another order, and other files."""
    inside = {"package/lib/index.js": b"//"}
    return tiny_datasets.tarball(
        inside | {f"package/{name}": files[name] for name in sorted(files, reverse=True)}
    )


def declaration(files: dict[str, bytes], packed: bytes | None = None) -> Weights:
    """Return the declaration of a tiny network."""
    packed = package(files) if packed is None else packed
    about = replace(RESNET50.package, size=len(packed), sha256=tiny_datasets.sha256(packed))
    return replace(
        RESNET50,
        package=about,
        files=tuple((name, len(content)) for name, content in files.items()),
        sha256=tiny_datasets.sha256(b"".join(files.values())),
    )


# Keras's layers, with axes (height, width, channels)


def _windows(x: np.ndarray, size: list[int], strides: list[int]) -> list[np.ndarray]:
    """Return the image at each position of a window: for each offset, the pixels that it sees."""
    rows, columns = ((x.shape[a] - size[a]) // strides[a] + 1 for a in (0, 1))
    return [
        x[i : i + strides[0] * rows : strides[0], j : j + strides[1] * columns : strides[1]]
        for i in range(size[0])
        for j in range(size[1])
    ]


def _padded(x: np.ndarray, padding: list[list[int]]) -> np.ndarray:
    return np.pad(x, [*padding, (0, 0)])


def _conv2d(x: np.ndarray, kernel: np.ndarray, bias: np.ndarray, config: Any) -> np.ndarray:
    size = config["kernel_size"]
    if config["padding"] == "same":
        assert config["strides"] == [1, 1]
        x = _padded(x, [[n // 2, n // 2] for n in size])
    windows = _windows(x, size, config["strides"])
    kernels = kernel.reshape(-1, *kernel.shape[2:])
    return sum(w @ k for w, k in zip(windows, kernels, strict=True)) + bias


def outputs(
    layers: dict[str, Any], tensors: dict[str, np.ndarray], image: np.ndarray
) -> dict[str, np.ndarray]:
    """Return what each layer of a network of Keras gives for an image, whose channels are BGR."""
    tensors = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    found: dict[str, np.ndarray] = {}
    for layer in layers["layers"]:
        name, kind, config = layer["name"], layer["class_name"], layer["config"]
        inputs = [found[node[0]] for node in layer["inbound_nodes"][0]] if found else [image]
        x = inputs[0]
        own = {k.partition("/")[2]: v for k, v in tensors.items() if k.startswith(f"{name}/")}
        if kind == "ZeroPadding2D":
            x = _padded(x, config["padding"])
        elif kind == "Conv2D":
            x = _conv2d(x, own["kernel"], own["bias"], config)
        elif kind == "BatchNormalization":
            spread = np.sqrt(own["moving_variance"] + config["epsilon"])
            x = (x - own["moving_mean"]) / spread * own["gamma"] + own["beta"]
        elif kind == "Activation":
            assert config["activation"] == "relu"
            x = np.maximum(x, 0)
        elif kind == "MaxPooling2D":
            assert config["padding"] == "valid"
            x = np.max(_windows(x, config["pool_size"], config["strides"]), axis=0)
        elif kind == "Add":
            x = inputs[0] + inputs[1]
        elif kind == "GlobalAveragePooling2D":
            x = x.mean(axis=(0, 1))
        elif kind == "Dense":
            assert config["activation"] == "softmax"
            scores = x @ own["kernel"] + own["bias"]
            x = np.exp(scores - scores.max())
            x /= x.sum()
        else:
            assert kind == "InputLayer", kind
        found[name] = x
    return found
