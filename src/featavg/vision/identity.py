"""Fingerprints that tell networks and images apart where results are saved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from featavg.arrays import FloatArray

_PROJECTIONS = 4
_NOISE = 0.1  # of the second half of probes
_SINGLE = torch.finfo(torch.float32).eps


def fingerprint(*tensors: Tensor) -> str:
    """Return a hash of dtypes, shapes and values."""
    digest = hashlib.sha256()
    for tensor in tensors:
        plain = tensor.detach().cpu()
        plain = plain.to_dense() if plain.layout != torch.strided else plain.contiguous()
        digest.update(f"{plain.dtype} {tuple(plain.shape)};".encode())
        digest.update(plain.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_fingerprint(model: nn.Module) -> str:
    """Return a hash of the description of a network, its weights and all its buffers.

    Code and attributes are not covered; see `behaviour`.
    """
    state = model.state_dict()
    state |= {name: value for name, value in model.named_buffers() if name not in state}
    tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    others = [repr(value) for name, value in state.items() if name not in tensors]
    text = f"{model!r} {list(state)} {fingerprint(*tensors.values())} {others or ''}"
    return hashlib.sha256(text.encode()).hexdigest()


def probes(images: Tensor) -> Tensor:
    """Return images in [0, 1], and the same images with noise."""
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal(tuple(images.shape)))
    return torch.cat([images, (images + _NOISE * noise.to(images)).clamp(0, 1)])


def behaviour(function: Callable[[Tensor], Tensor], images: Tensor) -> list[float]:
    """Return a few numbers that tell what a network makes of images, and along which slopes.

    Networks with equal weights may do different things with them: code and attributes are in no
    `state_dict`. Another function gives other numbers, as far as these images show it; another
    rounding changes them by less than `tolerance`. Slopes are part of it because attacks follow
    them. Networks that do something else each time are not told apart: they have no numbers.
    """
    devices = [images.device] if images.device.type == "cuda" else []
    found = []
    for _ in range(2):
        with torch.random.fork_rng(devices=devices), torch.enable_grad():
            torch.manual_seed(0)  # for networks that are random in evaluation mode, too
            found.append(_behaviour(function, images))
    return found[1] if found[0] == found[1] else []


def _behaviour(function: Callable[[Tensor], Tensor], images: Tensor) -> list[float]:
    inputs = images.detach().clone().requires_grad_()
    outputs = function(inputs.clone())  # which it may change in place
    weights = torch.from_numpy(_directions(1, *outputs.shape)[0]).to(outputs)
    slopes: Tensor | None = None
    if outputs.requires_grad:
        (slopes,) = torch.autograd.grad((weights * outputs).sum(), inputs, allow_unused=True)
    numbers = summary(outputs)
    if slopes is None:
        return numbers
    flat = _plain(slopes)
    scale = float(abs(flat).max(initial=0.0))
    return [*numbers, *_projected(flat / (scale or 1.0)), float(_logs(np.array(scale)))]


def summary(outputs: Tensor) -> list[float]:
    """Return a few numbers of a row for each image, in which each column counts equally."""
    values = _plain(outputs)
    scales = abs(values).max(axis=0, initial=0.0)
    return _projected(values / np.where(scales > 0, scales, 1.0)) + _projected(_logs(scales))


def tolerance(dtype: torch.dtype) -> float:
    """Return by how much rounding may change the numbers of `behaviour` and `summary`."""
    return 5e-3 if torch.finfo(dtype).eps <= _SINGLE else 0.1


def rounded(numbers: list[float], dtype: torch.dtype) -> list[float]:
    """Return numbers of `behaviour` for a name, in which rounding errors seldom show."""
    digits = 3 if torch.finfo(dtype).eps <= _SINGLE else 1
    return [round(number, digits) + 0.0 for number in numbers]  # 0.0 instead of -0.0


def _plain(values: Tensor) -> FloatArray:
    plain: FloatArray = values.detach().cpu().double().reshape(len(values), -1).numpy()
    return plain


def _logs(scales: FloatArray) -> FloatArray:
    return np.log10(scales, out=np.zeros_like(scales), where=scales > 0)


def _projected(values: FloatArray) -> list[float]:
    directions = _directions(_PROJECTIONS, values.size) / max(values.size, 1) ** 0.5
    found: list[float] = (directions @ values.flatten()).tolist()
    return found


def _directions(*shape: int) -> FloatArray:
    return np.random.default_rng(0).standard_normal(shape)
