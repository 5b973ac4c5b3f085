"""What an attack on an image classifier lowers, as functions of the logits, and what it must turn.

The *decision* of a network is binary: is the summed probability of the positive classes above that
of the negative ones? Robust accuracy is about this decision, whatever an attack lowers.
"""

from __future__ import annotations

import torch
from torch import Tensor

OBJECTIVES = ("cross-entropy", "readout", "probability")

# Logits of a deep network are known to about this many roundings of the largest one.
_ROUNDINGS = 32


def objectives_of(classes: int) -> tuple[str, ...]:
    """Return the objectives that are worth attacking for a network with this many logits.

    With two logits all are one: the cross-entropy and the difference of probabilities are monotone
    functions of the difference of the logits.

    Examples
    --------
    >>> objectives_of(2), objectives_of(10)
    (('readout',), ('cross-entropy', 'readout', 'probability'))
    """
    return ("readout",) if classes == 2 else OBJECTIVES


def readout(logits: Tensor, positive: Tensor) -> Tensor:
    r"""Return :math:`R = \log\sum_{J_+} e^{f_j} - \log\sum_{J_-} e^{f_j}` of each image.

    Paper: Section 4.2, whose readout :math:`\sum_{J_+} p_j - \sum_{J_-} p_j` is tanh(R/2). The
    decision is +1 where it is above 0.

    Parameters
    ----------
    logits : tensor, shape (images, classes)
    positive : tensor of bool, shape (classes,)

    Examples
    --------
    >>> readout(torch.tensor([[3.0, 1.0]]), torch.tensor([True, False]))
    tensor([2.])
    """
    return logits[:, positive].logsumexp(1) - logits[:, ~positive].logsumexp(1)


def objective(name: str, logits: Tensor, labels: Tensor, positive: Tensor) -> Tensor:
    r"""Return what an attack lowers, for each image; it is large where the network is right.

    Paper: none; Section 6.2 does not say what its PGD lowers.

    - "cross-entropy", the network's own: :math:`f_c - \log\sum_{j\ne c}e^{f_j}` for the label c.
      The cross-entropy is softplus of minus this, so the gradients have the same direction, and
      this one does not vanish where the network is sure.
    - "readout": y R, with y = ±1 the side of the label and R of `readout`.
    - "probability": :math:`y(\sum_{J_+} p_j - \sum_{J_-} p_j)`, from a softmax in the precision of
      the network. This is y tanh(R/2), so it is the attack on "readout" but for rounding: where the
      network is sure its gradient loses a part, or all. A curve that is higher than that of
      "readout" shows how much of the robustness is nothing but this.

    Parameters
    ----------
    name : {"cross-entropy", "readout", "probability"}
    logits : tensor, shape (images, classes)
    labels : tensor of int, shape (images,)
        The network's own classes.
    positive : tensor of bool, shape (classes,)

    Examples
    --------
    >>> logits, first = torch.tensor([[3.0, 1.0, 1.0]]), torch.tensor([True, False, False])
    >>> [round(float(objective(name, logits, torch.tensor([0]), first)), 4) for name in OBJECTIVES]
    [1.3069, 1.3069, 0.574]
    """
    if name == "cross-entropy":
        own = labels[:, None]
        others = logits.scatter(1, own, -torch.inf).logsumexp(1)
        return logits.gather(1, own)[:, 0] - others
    y = sides(labels, positive)
    if name == "readout":
        return y * readout(logits, positive)
    probabilities = logits.softmax(1)
    return y * (probabilities[:, positive].sum(1) - probabilities[:, ~positive].sum(1))


def sides(labels: Tensor, positive: Tensor) -> Tensor:
    """Return +1 for labels of positive classes and -1 for the others."""
    return torch.where(positive[labels], 1, -1)


def wrong(logits: Tensor, labels: Tensor, positive: Tensor) -> Tensor:
    """Return where the decision is not the side of the label; at a readout of 0 it is -1."""
    return (readout(logits.to(wide(logits.device)), positive) > 0) != positive[labels]


def clearly_wrong(logits: Tensor, labels: Tensor, positive: Tensor) -> Tensor:
    """Return where the decision is wrong by more than the rounding of the logits.

    What an attack finds has to pass this, so that it is still wrong in a batch of another size or
    on another device.
    """
    exact = logits.to(wide(logits.device))
    doubt = _ROUNDINGS * torch.finfo(logits.dtype).eps * exact.abs().amax(1)
    return sides(labels, positive) * readout(exact, positive) < -doubt


def wide(device: torch.device) -> torch.dtype:
    """Return the widest type of a device."""
    return torch.float32 if device.type == "mps" else torch.float64
