"""Training by PyTorch's autograd and optimisers: the independent implementation we compare with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812  as everybody calls it

import featavg as fa


class Signs(torch.optim.Optimizer):
    """Sign descent, which PyTorch has not."""

    def __init__(self, parameters: Iterable[torch.Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Move every entry by the learning rate against the sign of its gradient."""
        for group in self.param_groups:
            for value in group["params"]:
                value -= group["lr"] * value.grad.sign()


class Trained:
    """What an ordinary training loop ends with."""

    def __init__(self, parameters: dict[str, torch.Tensor], loss: float) -> None:
        self.weights, self.biases, self.second_layer = (
            parameters[name].detach().numpy() for name in ("weights", "biases", "second_layer")
        )
        self.loss = loss


def activated(activation: fa.Activation, z: torch.Tensor) -> torch.Tensor:
    """Return an activation by PyTorch's own functions."""
    if isinstance(activation, fa.LeakyReLU):
        return F.leaky_relu(z, activation.leak)
    if isinstance(activation, fa.ReLUPower):
        return F.relu(z) ** activation.power
    if isinstance(activation, fa.Softplus):
        return F.softplus(z, beta=activation.sharpness, threshold=1000)
    assert type(activation) is fa.ReLU
    return F.relu(z)


def mean_loss(loss: fa.Loss, f: torch.Tensor, sample: fa.Sample, batch: Any) -> torch.Tensor:
    """Return the mean loss of outputs (points, outputs) by PyTorch's own functions."""
    if isinstance(loss, fa.Weighted):
        points = np.arange(len(sample))[batch]
        each = [mean_loss(loss.loss, f[[j]], sample, [i]) for j, i in enumerate(points)]
        return (torch.tensor(loss.weights[points]) * torch.stack(each)).mean()
    y, c = torch.tensor(sample.y[batch]), torch.tensor(sample.cluster[batch])
    one = f.shape[1] == 1
    if isinstance(loss, fa.Logistic):
        right = (y > 0).to(f.dtype)
        smoothed = right * (1 - loss.smoothing) + loss.smoothing / 2
        return F.binary_cross_entropy_with_logits(f[:, 0], smoothed)
    if isinstance(loss, fa.CrossEntropy):
        return F.cross_entropy(f, c, label_smoothing=loss.smoothing)
    if isinstance(loss, fa.Square):
        target = y[:, None].to(f.dtype) if one else F.one_hot(c, f.shape[1]).to(f.dtype)
        return F.mse_loss(f, target, reduction="sum") / (2 * len(f))
    own = f[:, 0] * y if one else f.gather(1, c[:, None])[:, 0]
    others = f.scatter(1, c[:, None], -torch.inf) if not one else None
    if isinstance(loss, fa.Exponential):
        return (-own).exp().mean() if one else (others - own[:, None]).exp().sum(1).mean()
    if isinstance(loss, fa.Hinge):
        margin = own if one else own - others.amax(1)
        return F.relu(1 - margin).mean()
    assert isinstance(loss, fa.CoarseCrossEntropy)
    known = np.zeros(len(sample), dtype=bool)
    if loss._fine is not None:
        known[loss._fine] = True
    own_side = torch.tensor(sample.law.signs)[None, :] == y[:, None]
    p = F.softmax(f, dim=1)
    coarse = -(p * own_side).sum(1).log()
    return torch.where(
        torch.tensor(known[batch]), F.cross_entropy(f, c, reduction="none"), coarse
    ).mean()


def train(
    net: fa.BinaryNet | fa.MultiClassNet,
    sample: fa.Sample,
    learning_rate: float,
    steps: int,
    *,
    loss: fa.Loss | None = None,
    optimizer: Any = torch.optim.SGD,
    batches: Iterable[Any] | None = None,
    sharpness: float = 0.0,
    **options: Any,
) -> Trained:
    """Train by an ordinary loop; `sharpness` is the radius of sharpness-aware minimisation."""
    loss = net.default_loss if loss is None else loss
    x = torch.tensor(sample.x)
    kind = sample.x.dtype
    arrays = {
        "weights": net.weights,
        "biases": net.biases,
        "second_layer": net.second_layer.sum(axis=0),
    }
    is_trained = {
        "weights": True,
        "biases": net.has_biases,
        "second_layer": net.trains_second_layer,
    }
    parameters = {
        name: torch.tensor(value.astype(kind), requires_grad=is_trained[name])
        for name, value in arrays.items()
    }
    members = torch.tensor(net.second_layer != 0)
    moving = [value for value in parameters.values() if value.requires_grad]
    step_by = optimizer(moving, lr=learning_rate, **options)

    def value(batch: Any) -> torch.Tensor:
        z = x[batch] @ parameters["weights"].T + parameters["biases"]
        if net.activation.normalized:
            norms = parameters["weights"].norm(dim=1)
            hidden = norms * activated(net.activation, z / norms)
        else:
            hidden = activated(net.activation, z)
        if len(members) == 1:
            f = (hidden @ parameters["second_layer"])[:, None]
        else:
            f = (hidden * parameters["second_layer"]) @ members.to(hidden.dtype).T
        return mean_loss(loss, f, sample, batch)

    everything = slice(None)
    order = iter(batches) if batches is not None else None
    for _ in range(steps):
        batch = everything if order is None else next(order)
        step_by.zero_grad()
        value(batch).backward()
        if sharpness:
            with torch.no_grad():
                norm = torch.sqrt(sum((p.grad**2).sum() for p in moving))
                ahead = [sharpness * p.grad / (norm + 1e-12) for p in moving]
                for p, a in zip(moving, ahead, strict=True):
                    p += a
            step_by.zero_grad()
            value(batch).backward()
            with torch.no_grad():
                for p, a in zip(moving, ahead, strict=True):
                    p -= a
        step_by.step()
    return Trained(parameters, float(value(everything).detach()))
