"""Embeddings of images: computed once, and kept under a name that says what they were made of."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from featavg.arrays import FloatArray
from featavg.checks import count
from featavg.datasets.cache import cache_folder
from featavg.datasets.decode import Bytes
from featavg.errors import InputError
from featavg.files import write_atomically
from featavg.progress import ProgressReporter
from featavg.vision.backbones import Backbone

_FORMAT = "featavg embeddings 1"
_RESIZE = "bicubic"
# Images are kept a thousand at a time: a run that was stopped goes on, and one with more images
# uses those of one with fewer.
_CHUNK = 1000


def preprocess(images: Bytes, backbone: Backbone) -> Tensor:
    r"""Return images as a backbone wants them, shape (images, channels, size, size).

    Pixels are brought to [0, 1], images to the backbone's size by bicubic interpolation
    (half-pixel centres, borders repeated, :math:`a = -0.75`) and back into [0, 1], then
    each channel is shifted and scaled. What torchvision does without antialiasing, which
    enlarging does not need.
    """
    pixels = torch.from_numpy(np.array(images)).float() / 255
    if backbone.size is not None and pixels.shape[2:] != (backbone.size, backbone.size):
        size = (backbone.size, backbone.size)
        shrinks = min(pixels.shape[2:]) > backbone.size
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

    They are kept in ``embeddings`` beside the data sets, a thousand images to a file, named by the
    SHA-256 of pixels, weights and preprocessing. Files are written whole or not at all, are checked
    before they are used, and cannot run code; one that is damaged is computed again.

    Parameters
    ----------
    images : array of uint8, shape (images, channels, height, width)
        The images.
    backbone : Backbone
        What embeds them, see `load_backbone`.
    batch_size : int
        How many images go through the network at once.
    cache : bool
        Whether to look for what was computed before, and to keep what is computed now.
    progress : bool
        Whether to report progress on standard error.
    """
    images = np.asarray(images)
    if images.dtype != np.uint8 or images.ndim != 4 or 0 in images.shape:
        raise InputError(
            "images must be an array of uint8 of shape (images, channels, height, width); "
            f"got {images.dtype} of shape {images.shape}."
        )
    count("batch_size", batch_size)
    parts = []
    with ProgressReporter(f"{backbone.name}: images", len(images), enabled=progress) as reporter:
        for start in range(0, len(images), _CHUNK):
            chunk = images[start : start + _CHUNK]
            about = _description(chunk, backbone)
            found = read_embeddings(about) if cache else None
            if found is None:
                found = _compute(chunk, backbone, batch_size, reporter)
                if cache:
                    write_embeddings(about, found)
            else:
                reporter.advance(len(chunk))
            parts.append(found)
    return np.concatenate(parts)


def embeddings_folder() -> Path:
    """Return the folder of the embeddings, beside that of the data sets."""
    return cache_folder("embeddings")


def read_embeddings(about: dict[str, Any]) -> FloatArray | None:
    """Return embeddings that were kept, or None if they are not there, whole and the right ones."""
    array, manifest = _paths(about)
    try:
        kept = json.loads(manifest.read_text(encoding="utf-8"))
        content = array.read_bytes()
        expected = {**about, "torch": kept["torch"], "sha256": hashlib.sha256(content).hexdigest()}
        if kept != expected:
            return None
        embeddings: FloatArray = np.load(io.BytesIO(content), allow_pickle=False)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    images = about["shape"][0]
    sound = embeddings.dtype == np.float32 and embeddings.ndim == 2 and len(embeddings) == images
    return embeddings if sound else None


def write_embeddings(about: dict[str, Any], embeddings: FloatArray) -> None:
    """Keep embeddings; the manifest comes last, so where it is, they are."""
    array, manifest = _paths(about)
    buffer = io.BytesIO()
    np.save(buffer, embeddings, allow_pickle=False)
    content = buffer.getvalue()
    torch_version, sha256 = str(torch.__version__), hashlib.sha256(content).hexdigest()
    text = json.dumps({**about, "torch": torch_version, "sha256": sha256}, indent=2)
    try:
        write_atomically(array, content)
        write_atomically(manifest, f"{text}\n".encode())
    except OSError as error:
        raise InputError(
            f"cannot write {array.parent}: {error.strerror or error}; FEATAVG_CACHE can name "
            "another folder."
        ) from None


def _description(images: Bytes, backbone: Backbone) -> dict[str, Any]:
    """Return all that embeddings depend on."""
    return {
        "format": _FORMAT,
        "backbone": backbone.name,
        "weights": backbone.weights_sha256,
        "size": backbone.size,
        "resize": _RESIZE,
        "mean": list(backbone.mean),
        "std": list(backbone.std),
        "shape": list(images.shape),
        "images": hashlib.sha256(np.ascontiguousarray(images).data).hexdigest(),
    }


def _paths(about: dict[str, Any]) -> tuple[Path, Path]:
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    return embeddings_folder() / f"{key}.npy", embeddings_folder() / f"{key}.json"


def _compute(
    images: Bytes, backbone: Backbone, batch_size: int, reporter: ProgressReporter
) -> FloatArray:
    features: Any = backbone.module.features
    batches = []
    with torch.inference_mode():
        for start in range(0, len(images), batch_size):
            some = images[start : start + batch_size]
            batches.append(features(preprocess(some, backbone)).float().numpy())
            reporter.advance(len(some))
    embeddings: FloatArray = np.concatenate(batches)
    if embeddings.ndim != 2 or len(embeddings) != len(images):
        raise InputError(
            f"{backbone.name} must return one row of features for each image; "
            f"got the shape {embeddings.shape} for {len(images)} images."
        )
    if not np.isfinite(embeddings).all():
        raise InputError(f"{backbone.name} must return finite features; got NaN or infinity.")
    return embeddings
