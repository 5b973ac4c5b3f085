"""Small images with a known structure, and networks for them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from featavg.vision.models import SmallCNN
from featavg.vision.recipes import Recipe
from featavg.vision.training import train


def blobs(images: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten smooth patterns on 10×10 pixels, of low contrast, with noise and many black pixels."""
    coarse = np.random.default_rng(3).standard_normal((10, 1, 5, 5))
    patterns = coarse.repeat(2, axis=2).repeat(2, axis=3)
    rng = np.random.default_rng(seed)
    labels = np.arange(images) % 10
    noisy = 0.25 + 0.15 * patterns[labels] + 0.15 * rng.standard_normal((images, 1, 10, 10))
    return (255 * noisy.clip(0, 1)).astype(np.uint8), labels


def trained_on(labels: np.ndarray, images: np.ndarray, classes: int) -> nn.Module:
    net = SmallCNN(1, classes, size=10, width=4, rng=np.random.default_rng(0))
    recipe = Recipe(epochs=6, batch=50, learning_rate=0.05, schedule="one-cycle")
    return train(net, images, labels, recipe, seed=0, accelerator="cpu").model


def linear(weights: torch.Tensor, bias: torch.Tensor) -> nn.Module:
    net = nn.Sequential(nn.Flatten(), nn.Linear(weights.shape[1], len(weights)))
    net[1].weight.data, net[1].bias.data = weights, bias
    return net
