"""Recipes: all settings of a training, the paper's and quick ones for two cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from featavg import checks
from featavg.errors import InputError
from featavg.files import json_hash

SCHEDULES = ("cosine", "constant", "one-cycle", "loss-based")
OPTIMIZERS = ("sgd", "adam")
PRECISIONS = ("32-true", "16-mixed", "bf16-mixed")
_COUNTED = ("cosine", "one-cycle")  # the schedules that depend on the number of epochs
_ADDED = ("optimizer", "until_loss", "adversarial_radius", "adversarial_steps")
_WARM_UP = 0.2  # of all steps of one-cycle
_START = 1 / 25  # of the largest rate: the first rate of one-cycle
_RAISE, _LOWER, _UNDONE = 2 ** (1 / 5), 2 ** (-1 / 10), 1 / 2  # of the loss-based rate
_WORSE = math.log(2)  # an epoch whose loss is this much above the smallest, in log, is undone


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training with all its settings.

    Paper: Section 6.2, for the presets ``cifar10`` and ``mnist`` of `RECIPES`.

    Parameters
    ----------
    epochs, batch : int
        The number of passes over the data, and of images in a step on all devices together.
    learning_rate : float
        The initial learning rate; for ``one-cycle`` the largest one.
    schedule : str
        ``cosine`` (falls to 0, a new value each epoch), ``constant``, ``one-cycle`` (up and down
        on straight lines, a new value each step) or ``loss-based`` (the talk's; needs no weight
        decay): see `rates`.
    momentum, weight_decay : float
        As in `torch.optim.SGD`; for ``adam`` the first of its two ``betas``, and its L2 penalty.
    optimizer : {"sgd", "adam"}
        `torch.optim.SGD` or `torch.optim.Adam`.
    until_loss : float
        Stop after the first epoch with at most this loss, as `Trained.losses` has it; 0 for
        never. Only with a schedule that does not depend on the number of epochs, which is then
        the largest one.
    adversarial_radius, adversarial_steps : float, int
        Train on the worst images within this L2 distance, as PGD of so many steps finds them (see
        `featavg.vision.adversarial.perturbed`); 0 for the images themselves.
    crop : int
        Random crops from images padded with this many black pixels on each side; 0 for none.
    flip : bool
        Mirror each image left to right with probability 1/2.
    small_epochs, small_size : int
        The number of first epochs in which images are shrunk to this height and width, which is
        faster. Only for networks that accept images of any size, such as `ResNet18`.
    precision : str
        ``32-true``, or on a GPU ``16-mixed`` or ``bf16-mixed``.

    Examples
    --------
    >>> from dataclasses import replace
    >>> recipe = replace(RECIPES["cifar10"], epochs=30)
    >>> [round(recipe.rates(epoch, steps=391)[0], 3) for epoch in (0, 10, 20, 29)]
    [0.1, 0.075, 0.025, 0.0]
    """

    epochs: int
    batch: int = 128
    learning_rate: float = 0.1
    schedule: str = "cosine"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    optimizer: str = "sgd"
    until_loss: float = 0.0
    adversarial_radius: float = 0.0
    adversarial_steps: int = 5
    crop: int = 0
    flip: bool = False
    small_epochs: int = 0
    small_size: int = 20
    precision: str = "32-true"

    def __post_init__(self) -> None:
        """Check every setting."""
        for name in ("epochs", "batch", "small_size", "adversarial_steps"):
            checks.count(name, getattr(self, name))
        for name in ("crop", "small_epochs"):
            checks.count(name, getattr(self, name), minimum=0)
        checks.scale("learning_rate", self.learning_rate)
        checks.choice("schedule", self.schedule, SCHEDULES)
        if checks.scale("momentum", self.momentum, zero=True) >= 1:
            raise InputError(f"momentum must be below 1; got {self.momentum!r}.")
        for name in ("weight_decay", "until_loss", "adversarial_radius"):
            checks.scale(name, getattr(self, name), zero=True)
        checks.choice("optimizer", self.optimizer, OPTIMIZERS)
        checks.flag("flip", self.flip)
        checks.choice("precision", self.precision, PRECISIONS)
        if self.schedule == "loss-based" and (self.weight_decay or self.momentum):
            raise InputError(
                "weight_decay and momentum must be 0 with the loss-based schedule because its "
                f"steps grow as the loss falls; got {self.weight_decay!r} and {self.momentum!r}."
            )

        if self.schedule == "loss-based" and self.optimizer != "sgd":
            raise InputError(
                "optimizer must be 'sgd' with the loss-based schedule because the steps of others "
                f"do not depend on the scale of the loss; got {self.optimizer!r}."
            )
        if self.until_loss and self.schedule in _COUNTED:
            raise InputError(
                "until_loss must be 0 with a schedule that depends on the number of epochs; "
                f"got {self.until_loss!r} and {self.schedule!r}."
            )

    @property
    def fingerprint(self) -> str:
        """A hash of all settings that the weights after an epoch depend on.

        It does not include the number of epochs where the schedule does not depend on it, so that
        such a training can be continued with more epochs; nor settings that recipes did not have
        at first where they have their default, so that checkpoints from before are still read.
        """
        added = {item.name: item.default for item in fields(self) if item.name in _ADDED}
        settings = {k: v for k, v in asdict(self).items() if k not in added or v != added[k]}
        if self.schedule not in _COUNTED:
            del settings["epochs"]
        return json_hash(settings)

    def rates(self, epoch: int, steps: int, log_losses: Sequence[float] = ()) -> list[float]:
        """Return the learning rate of each step of an epoch.

        With eta the learning rate of the recipe, E epochs and S steps in all, it is

        - constant: eta;
        - cosine: eta (1 + cos(pi epoch / E)) / 2;
        - one-cycle: from eta / 25 up to eta over the first fifth of the S steps, then down to 0;
        - loss-based (after Lyu and Li, 2020, Appendix K.1): alpha / L, where L is the smallest loss
          after an epoch so far and alpha starts at eta, grows by 2^(1/5) after an epoch with a new
          smallest loss and falls by 2^(1/10) after any other. The result is alpha: training divides
          the loss by L instead, in logarithms, so that no loss is too small. Differs from theirs:
          an epoch that ends with more than twice the smallest loss is undone (see `undoes`) and
          alpha halved, because one step that is too long can deactivate every neuron.

        Parameters
        ----------
        epoch : int
            From 0.
        steps : int
            Steps in an epoch.
        log_losses : sequence of float
            Logarithms of the mean loss after each epoch before this one (loss-based only).
        """
        eta = self.learning_rate
        if self.schedule == "one-cycle":
            first, total = epoch * steps, self.epochs * steps
            return [eta * _cycle(first + step, total) for step in range(steps)]
        if self.schedule == "cosine":
            eta *= (1 + math.cos(math.pi * epoch / self.epochs)) / 2
        elif self.schedule == "loss-based":
            smallest = math.inf
            for loss in log_losses:
                undone = loss - smallest > _WORSE
                eta *= _RAISE if loss < smallest else _UNDONE if undone else _LOWER
                smallest = min(loss, smallest)
        return [eta] * steps

    def ends(self, log_losses: Sequence[float]) -> bool:
        """Return whether a training with these losses is finished."""
        reached = bool(log_losses) and log_losses[-1] <= _log(self.until_loss)
        return reached or len(log_losses) >= self.epochs

    def undoes(self, log_losses: Sequence[float]) -> bool:
        """Return whether the last epoch is undone: loss-based, and its loss is too large."""
        *before, last = log_losses
        return self.schedule == "loss-based" and last - min(before, default=math.inf) > _WORSE


def _log(loss: float) -> float:
    return math.log(loss) if loss else -math.inf


def _cycle(step: int, steps: int) -> float:
    """Return the height of a triangle with its peak, 1, after the first fifth of the steps."""
    peak = _WARM_UP * steps
    if step < peak:
        return _START + (1 - _START) * step / peak
    return (steps - step) / (steps - peak)


_MNIST = Recipe(epochs=100, learning_rate=0.001, schedule="constant")
# 99.1 % on the two halves of MNIST after 63 s of CPU time (ResNet18, width 8; SmallCNN: 48 s)
_QUICK_MNIST = Recipe(epochs=1, learning_rate=0.1, schedule="one-cycle")
_ADAM = Recipe(epochs=8, learning_rate=0.001, schedule="constant", optimizer="adam", weight_decay=0)

RECIPES: dict[str, Recipe] = {
    "cifar10": Recipe(epochs=200, crop=4, flip=True),
    "mnist": _MNIST,
    "fashion-mnist": _MNIST,  # Paper: none; as for MNIST
    # ResNet18 of width 16 on the two halves of CIFAR-10: about 87 % in 10 minutes on two cores
    "cifar10-quick": Recipe(
        epochs=12,
        batch=64,
        schedule="one-cycle",
        crop=2,
        flip=True,
        small_epochs=8,
    ),
    "mnist-quick": _QUICK_MNIST,
    "fashion-mnist-quick": _QUICK_MNIST,
    "adam": _ADAM,  # Paper: none; StridedCNN on 10,000 images of MNIST or Fashion-MNIST
    "mnist-margin": Recipe(  # the talk: SmallCNN, loss 1e-20 after 107 epochs
        epochs=107, batch=100, schedule="loss-based", momentum=0, weight_decay=0
    ),
}
