"""Embeddings of images, computed once and cached."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from featavg.arrays import FloatArray
from featavg.checks import count
from featavg.datasets.decode import Bytes
from featavg.datasets.embedding_cache import Advance, Embedder
from featavg.errors import InputError
from featavg.files import json_hash
from featavg.vision.backbones import Backbone
from featavg.vision.evaluation import checked_images, evaluating, number_format
from featavg.vision.identity import rounded, summary

_FORMAT = "featavg embeddings 4"
_PROBES = 3
_RESIZE = "bicubic"


def preprocess(images: Bytes, backbone: Backbone) -> Tensor:
    r"""Return images in the format of a backbone, shape (images, channels, size, size).

    Pixels are scaled to [0, 1], images resized to the backbone's size by bicubic interpolation
    (half-pixel centres, repeated borders, :math:`a = -0.75`) and clipped to [0, 1], then each
    channel is shifted and scaled. Where a side shrinks, PyTorch's antialiasing is used.
    """
    channels = images.shape[1]
    for values in (backbone.mean, backbone.std):
        if 1 not in (len(values), channels) and len(values) != channels:
            raise InputError(
                f"images must have {len(values)} channels, or one, for {backbone.name}; "
                f"got {channels}."
            )
    pixels = torch.from_numpy(np.array(images)).float() / 255
    if backbone.size is not None and pixels.shape[2:] != (backbone.size, backbone.size):
        size = (backbone.size, backbone.size)
        shrinks = max(pixels.shape[2:]) > backbone.size
        pixels = torch.nn.functional.interpolate(
            pixels, size=size, mode=_RESIZE, align_corners=False, antialias=shrinks
        ).clamp_(0, 1)
    mean, std = (torch.tensor(v).reshape(-1, 1, 1) for v in (backbone.mean, backbone.std))
    return (pixels - mean) / std


def embed(
    images: NDArray[np.uint8],
    backbone: Backbone,
    *,
    batch_size: int = 50,
    cache: bool = True,
    progress: bool = False,
) -> FloatArray:
    """Return the embedding of each image, shape (images, features), as float32.

    Paper: Section 6.1, the embeddings of CIFAR-10.

    They are cached in ``embeddings`` beside the data sets, a thousand images to a file. Its name is
    a SHA-256 of the pixels, the weights, the preprocessing and the network's outputs on the first
    three images, which tell networks apart that do different things with equal weights. Files are
    written atomically, have checksums and cannot run code; a damaged file is computed again.

    Parameters
    ----------
    images : array of uint8, shape (images, channels, height, width)
        The images.
    backbone : Backbone
        The network that embeds them, see `load_backbone`.
    batch_size : int
        The number of images in a batch.
    cache : bool
        Whether to read from and write to the cache.
    progress : bool
        Whether to report progress on standard error.
    """
    images = checked_images(images).numpy()
    count("batch_size", batch_size)
    embedder = Embedder(
        backbone.name,
        "image",
        partial(_key, about=_about(backbone) if cache else {}, backbone=backbone),
        partial(_compute, backbone=backbone, batch_size=batch_size),
    )
    return embedder(images, cache=cache, progress=progress)


def _key(images: Bytes, about: dict[str, Any], backbone: Backbone) -> str:
    """Return a hash of everything that embeddings depend on."""
    pixels = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    probed = _compute(images[:_PROBES], lambda _: None, backbone=backbone, batch_size=_PROBES)
    seen = rounded(summary(torch.from_numpy(probed)), number_format(backbone.module).dtype)
    return json_hash({**about, "behaviour": seen, "shape": list(images.shape), "images": pixels})


def _about(backbone: Backbone) -> dict[str, Any]:
    """Return what embeddings depend on besides the images."""
    return {
        "format": _FORMAT,
        "backbone": backbone.name,
        "weights": backbone.weights_sha256,
        "size": backbone.size,
        "resize": _RESIZE,
        "mean": list(backbone.mean),
        "std": list(backbone.std),
    }


def _compute(images: Bytes, advance: Advance, *, backbone: Backbone, batch_size: int) -> FloatArray:
    features: Any = backbone.module.features
    like = number_format(backbone.module)
    batches = []
    with evaluating(backbone.module), torch.inference_mode():
        for start in range(0, len(images), batch_size):
            some = preprocess(images[start : start + batch_size], backbone)
            rows = features(some.to(like))
            if not isinstance(rows, Tensor) or rows.ndim != 2 or len(rows) != len(some):
                got = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
                raise InputError(
                    f"{backbone.name} must return one row of features for each image; "
                    f"got {got} for {len(some)} images."
                )
            batches.append(rows.float().cpu().numpy())
            advance(len(some))
    return np.concatenate(batches)
