"""Gradient descent by PyTorch's autograd: the independent implementation we compare with."""

from __future__ import annotations

import numpy as np
import torch

import featavg as fa


def train(net, sample: fa.Sample, learning_rate: float, steps: int) -> tuple[np.ndarray, ...]:
    """Return weights, biases and the final loss of an ordinary training loop."""
    x = torch.tensor(sample.x)
    weights = torch.tensor(net.weights.astype(sample.x.dtype), requires_grad=True)
    biases = torch.tensor(net.biases.astype(sample.x.dtype), requires_grad=True)
    binary = isinstance(net, fa.BinaryNet)
    y = torch.tensor(sample.y if binary else sample.cluster)
    optimizer = torch.optim.SGD([weights, biases] if binary else [weights], lr=learning_rate)

    def loss():
        hidden = torch.relu(x @ weights.T + biases)
        if binary:
            m = net.width
            f = hidden[:, :m].mean(dim=1) - hidden[:, m:].mean(dim=1)
            return torch.nn.functional.softplus(-y * f).mean()
        logits = hidden.reshape(len(x), net.classes, net.width).mean(dim=2)
        return torch.nn.functional.cross_entropy(logits, y)

    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return weights.detach().numpy(), biases.detach().numpy(), float(loss().detach())


def train_polynomial(
    net: fa.PolynomialNet, sample: fa.Sample, learning_rate: float, steps: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return weights, second layer and the final loss of an ordinary training loop."""
    x, y = torch.tensor(sample.x), torch.tensor(sample.y)
    weights = torch.tensor(np.array(net.weights), requires_grad=True)
    outer = torch.tensor(np.array(net.outer), requires_grad=net.train_second_layer)
    trained = [weights, outer] if net.train_second_layer else [weights]
    optimizer = torch.optim.SGD(trained, lr=learning_rate)

    def loss():
        values = torch.relu(x @ weights.T) ** net.power / weights.norm(dim=1) ** (net.power - 1)
        return torch.nn.functional.softplus(-y * (values @ outer)).mean()

    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return weights.detach().numpy(), outer.detach().numpy(), float(loss().detach())
