"""The ResNet-50 of Keras, trained on ImageNet, from tensors that TensorFlow.js saved.

It is the first version of the network: where a stage halves the image, the first 1 x 1 convolution
of its first block has the stride 2. Each convolution has a bias, and the normalisation that follows
is folded into it.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from featavg.arrays import FloatArray
from featavg.datasets.tfjs import Tensors, read_tensors
from featavg.datasets.weights import RESNET50, read_weights
from featavg.errors import InputError
from featavg.files import DamagedError, parse_json

# the means of red, green and blue, of pixels from 0 to 255, that were subtracted in the training
MEANS = (123.68, 116.779, 103.939)
_EPSILON = 1e-3
_BLOCKS = {2: "abc", 3: "abcd", 4: "abcdef", 5: "abc"}
_MODEL, _LABELS = "ResNet50/model.json", "assets/labels.json"
Layer = TypeVar("Layer", nn.Conv2d, nn.Linear)


class ResNet50(nn.Module):
    """A ResNet-50 of which the normalisations are folded into the convolutions.

    The widths of the layers are those of the tensors.

    Parameters
    ----------
    tensors : dict of arrays
        The tensors by Keras's names: kernels with axes (height, width, inputs, outputs), and the
        channels of the image in the order blue, green, red.
    """

    def __init__(self, tensors: Tensors) -> None:
        super().__init__()
        left = dict(tensors)
        self.stem = _convolution(left, "conv1", "bn_conv1", stride=2)
        with torch.no_grad():
            self.stem.weight.copy_(self.stem.weight.flip(1))  # images have red first
        blocks = [
            Bottleneck(left, f"{stage}{letter}", 2 if stage > 2 and letter == "a" else 1)
            for stage, letters in _BLOCKS.items()
            for letter in letters
        ]
        self.blocks = nn.Sequential(*blocks)
        self.head = _head(left)
        if left:
            raise _not_resnet50(f"{next(iter(left))} is not one of them")
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, x: Tensor) -> Tensor:
        """Return the last feature maps, averaged over the image: 2048 features."""
        x = torch.relu(self.stem(x.contiguous(memory_format=torch.channels_last)))
        # Keras pads with zeros, which are never above the maximum, because nothing is below zero
        x = nn.functional.max_pool2d(x, 3, stride=2, padding=1)
        maps: Tensor = self.blocks(x)
        return maps.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Return the score of each class of ImageNet, before the softmax."""
        scores: Tensor = self.head(self.features(x))
        return scores


class Bottleneck(nn.Module):
    """A block: three convolutions, of 1, 3 and 1 pixels, beside a shortcut.

    Parameters
    ----------
    tensors : dict of arrays
        The tensors; those of the block are removed.
    name : str
        The name of the block, such as ``3a``.
    stride : int
        The stride of the first convolution and of the shortcut.
    """

    def __init__(self, tensors: Tensors, name: str, stride: int) -> None:
        super().__init__()

        def branch(part: str, stride: int = 1) -> nn.Conv2d:
            return _convolution(tensors, f"res{name}_{part}", f"bn{name}_{part}", stride=stride)

        self.reduce = branch("branch2a", stride)
        self.middle = branch("branch2b")
        self.expand = branch("branch2c")
        has_own = f"res{name}_branch1/kernel" in tensors
        self.shortcut: nn.Module = branch("branch1", stride) if has_own else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps after the block."""
        inner = torch.relu(self.middle(torch.relu(self.reduce(x))))
        return torch.relu(self.expand(inner) + self.shortcut(x))


def load_resnet50() -> ResNet50:
    """Return the network with its published weights, which must be in the cache or in a folder."""
    return ResNet50(_tensors(read_weights(RESNET50.name)))


def imagenet_classes() -> tuple[str, ...]:
    """Return the names of the classes of ImageNet, in the order of the network's scores."""
    try:
        names = parse_json(bytes(read_weights(RESNET50.name)[_LABELS]), "labels.json")
        return tuple(names[str(i)] for i in range(len(names)))
    except (DamagedError, KeyError, TypeError):
        raise InputError("labels.json must contain a name for each class.") from None


def _tensors(files: dict[str, memoryview]) -> Tensors:
    shards = {name.rpartition("/")[2]: file for name, file in files.items() if "shard" in name}
    return read_tensors(f"the network {RESNET50.name}", files[_MODEL], shards)


def _convolution(tensors: Tensors, name: str, norm: str, *, stride: int = 1) -> nn.Conv2d:
    """Return a convolution with the normalisation after it; their tensors are removed.

    The image is padded so that without stride it keeps its size.
    """
    kernel = _taken(tensors, f"{name}/kernel", (None, None, None, None))
    height, width, inputs, outputs = kernel.shape
    bias, gamma, beta, mean, variance = (
        _taken(tensors, each, (outputs,))
        for each in (
            f"{name}/bias",
            f"{norm}/gamma",
            f"{norm}/beta",
            f"{norm}/moving_mean",
            f"{norm}/moving_variance",
        )
    )
    scale = gamma / np.sqrt(variance + _EPSILON)
    padding = (height // 2, width // 2)
    made = nn.Conv2d(inputs, outputs, (height, width), stride, padding, device="meta")
    return _filled(made, (kernel * scale).transpose(3, 2, 0, 1), (bias - mean) * scale + beta)


def _head(tensors: Tensors) -> nn.Linear:
    kernel = _taken(tensors, "fc1000/kernel", (None, None))
    inputs, outputs = kernel.shape
    made = nn.Linear(inputs, outputs, device="meta")
    return _filled(made, kernel.T, _taken(tensors, "fc1000/bias", (outputs,)))


def _taken(tensors: Tensors, name: str, shape: tuple[int | None, ...]) -> FloatArray:
    """Remove a tensor and return it in double precision; a length of None is any length."""
    if name not in tensors:
        raise _not_resnet50(f"{name} is missing")
    tensor = tensors.pop(name)
    if len(tensor.shape) != len(shape) or any(
        wanted not in (None, found) for wanted, found in zip(shape, tensor.shape, strict=True)
    ):
        raise _not_resnet50(f"{name} has the shape {tensor.shape}")
    doubled: FloatArray = tensor.astype(np.float64)
    return doubled


def _filled(layer: Layer, weight: FloatArray, bias: FloatArray) -> Layer:
    """Return a layer, made without memory and so without random weights, with these weights."""
    layer = layer.to_empty(device="cpu")
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(weight)))
        layer.bias.copy_(torch.from_numpy(bias))  # type: ignore[union-attr]
    return layer


def _not_resnet50(reason: str) -> InputError:
    return InputError(f"the tensors must be those of a ResNet-50; {reason}.")
