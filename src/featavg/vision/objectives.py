"""Functions of the logits: losses of training, objectives of attacks, and the binary decision.

The labels of losses are a class for each image, or a row of targets: the weight of the image at the
classes that count as right, 0 at the others (see `featavg.vision.supplied_labels`).

The *decision* of a network is binary: is the summed probability of the positive classes above that
of the negative ones? Robust accuracy is about this decision, whatever objective an attack has.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from featavg.vision.models import widest_float

OBJECTIVES = ("cross-entropy", "readout", "probability")
TARGETED = "targeted"


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
    r"""Return the objective that an attack minimises, for each image.

    Paper: none; Section 6.2 does not say what the objective of its PGD is.

    - "cross-entropy", the network's own: :math:`f_c - \log\sum_{j\ne c}e^{f_j}` for the label c.
      The cross-entropy is the softplus of its negative, so the gradients have the same direction,
      and this one does not vanish where the network is confident.
    - "readout": y R, with y = ±1 the side of the label and R of `readout`.
    - "probability": :math:`y(\sum_{J_+} p_j - \sum_{J_-} p_j)`, from a softmax in the precision of
      the network. This is y tanh(R/2), so it equals the attack on "readout" up to rounding, but its
      gradient is partly or completely lost where the network is confident. A curve above that of
      "readout" shows how much apparent robustness is due to this.

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
        return -excess(logits, labels)
    y = sides(labels, positive)
    if name == "readout":
        return y * readout(logits, positive)
    probabilities = logits.softmax(1)
    return y * (probabilities[:, positive].sum(1) - probabilities[:, ~positive].sum(1))


def aimed(logits: Tensor, labels: Tensor, positive: Tensor, aims: Tensor) -> Tensor:
    r"""Return the objective of an attack with a target class on the other side for each image.

    Paper: none, an extension. It is :math:`\log\sum_{J_y} e^{f_j} - f_t` for the side y of the
    label and the target t; where it is below 0, the decision is wrong.
    """
    own = positive == positive[labels][:, None]
    return logits.masked_fill(~own, -torch.inf).logsumexp(1) - logits.gather(1, aims[:, None])[:, 0]


def excess(logits: Tensor, labels: Tensor) -> Tensor:
    """Return z, logsumexp over the other logits minus that over the right ones.

    The cross-entropy is log(1 + exp(z)), which is accurate even where the usual form rounds to 0.
    """
    if labels.ndim == 2:
        right = labels > 0
        others, own = (logits.masked_fill(mask, -torch.inf) for mask in (right, ~right))
        return others.logsumexp(1) - own.logsumexp(1)
    chosen = labels[:, None]
    return logits.scatter(1, chosen, -torch.inf).logsumexp(1) - logits.gather(1, chosen)[:, 0]


def log_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logarithm of the cross-entropy log(1 + exp(z)) of each image; below z = -30, z."""
    z = excess(logits, labels)
    losses = torch.where(z < -30, z, nn.functional.softplus(z.clamp(min=-30)).log())
    return losses if labels.ndim == 1 else losses + labels.amax(1).log()


def scaled_losses(logits: Tensor, labels: Tensor, log_scale: float) -> Tensor:
    """Return the cross-entropy of each image, divided by exp(log_scale)."""
    if log_scale != 0:
        return (log_losses(logits, labels) - log_scale).exp()
    losses = nn.functional.softplus(excess(logits, labels))
    return losses if labels.ndim == 1 else losses * labels.amax(1)


def hits(logits: Tensor, labels: Tensor) -> Tensor:
    """Return where the largest logit is the right one, or one of the right ones."""
    largest = logits.argmax(1)
    return largest == labels if labels.ndim == 1 else labels.gather(1, largest[:, None])[:, 0] > 0


def sides(labels: Tensor, positive: Tensor) -> Tensor:
    """Return +1 for labels of positive classes and -1 for the others."""
    return torch.where(positive[labels], 1, -1)


def wrong(logits: Tensor, labels: Tensor, positive: Tensor) -> Tensor:
    """Return where the decision is not the side of the label; at a readout of 0 it is -1."""
    return (readout(logits.to(widest_float(logits.device)), positive) > 0) != positive[labels]
