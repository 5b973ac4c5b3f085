"""Two-layer networks as PyTorch modules, for the tools of others."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from featavg.arrays import BoolArray, FloatArray
from featavg.networks.activation import Activation


class TorchNet(nn.Module):
    """A two-layer network as an ordinary module; see `TwoLayerNet.to_torch`."""

    def __init__(
        self,
        *,
        weights: FloatArray,
        biases: FloatArray,
        second_layer: FloatArray,
        positive: BoolArray,
        activation: Activation,
        readout: str,
    ) -> None:
        super().__init__()
        activation.torch(torch.zeros(1))  # refuses where there is no such form
        self.hidden = nn.Linear(weights.shape[1], len(weights))
        self.hidden.weight.data = torch.tensor(np.array(weights))
        self.hidden.bias.data = torch.tensor(np.array(biases))
        self.register_buffer("second_layer", torch.tensor(np.array(second_layer)))
        self.register_buffer("positive", torch.tensor(positive))
        self.activation, self.readout = activation, readout

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, shape (points, 2) or (points, classes)."""
        second_layer, positive = self.get_buffer("second_layer"), self.get_buffer("positive")
        z = self.hidden(x)
        if self.activation.normalized:
            norms = self.hidden.weight.norm(dim=1)
            norms = torch.where(norms > 0, norms, 1)
            hidden = norms * self.activation.torch(z / norms)
        else:
            hidden = self.activation.torch(z)
        logits: Tensor = hidden @ second_layer.T
        if self.readout == "classes":
            return logits
        if self.readout == "probability":
            decision = logits[:, positive].logsumexp(1) - logits[:, ~positive].logsumexp(1)
        elif self.readout == "argmax":
            decision = logits[:, positive].amax(1) - logits[:, ~positive].amax(1)
        elif self.readout == "logit-sum":
            decision = logits[:, positive].sum(1) - logits[:, ~positive].sum(1)
        else:
            decision = logits[:, 0]
        # at a decision of 0 the first of equal logits wins, which is the class of -1
        return torch.stack([torch.zeros_like(decision), decision], dim=1)
