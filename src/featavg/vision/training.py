"""Training of image classifiers, which can be interrupted at any time and resumed."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.errors import InputError
from featavg.files import clear_leftovers
from featavg.progress import ProgressReporter
from featavg.vision import checkpoint as checkpoints
from featavg.vision import training_checks
from featavg.vision.adversarial import perturbed
from featavg.vision.augmentation import Draw, ImagePool
from featavg.vision.checkpoint import Checkpoint, Identity
from featavg.vision.devices import launched_fabric, limited_threads
from featavg.vision.evaluation import checked_images, evaluating, logits_of, to_model
from featavg.vision.identity import behaviour, fingerprint, model_fingerprint, tolerance
from featavg.vision.models import ImageClassifier, in_layout, memory_format, widest_float
from featavg.vision.objectives import hits, log_losses, scaled_losses
from featavg.vision.recipes import Recipe
from featavg.vision.supplied_labels import SuppliedLabels

_SECONDS_BETWEEN_LABELS = 0.5
_SECOND_BETA = 0.999  # of Adam, as usual
_PROBES = 4  # images by which networks are told apart
_TINY = 5e-324  # the smallest number above 0: a loss of 0 has no logarithm


@dataclass(frozen=True, repr=False)
class Trained:
    """A trained network and the history of its training.

    Attributes
    ----------
    model : torch.nn.Module
        The network, in evaluation mode, on the device it was trained on.
    recipe : Recipe
        The settings of the training.
    log_losses, accuracies : tuple of float
        For each epoch, the logarithm of the mean loss and the accuracy on the training images as
        they were trained on, augmented or perturbed, averaged while the weights changed.
    seconds : float
        Wall time of all epochs, including those before an interruption.
    resumed_from : int
        The number of epochs of the checkpoint; 0 for a run from the start.
    """

    model: nn.Module
    recipe: Recipe
    log_losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    seconds: float
    resumed_from: int

    @property
    def losses(self) -> tuple[float, ...]:
        """The mean loss of each epoch."""
        return tuple(math.exp(loss) for loss in self.log_losses)

    def __repr__(self) -> str:
        return (
            f"Trained({type(self.model).__name__}, {len(self.log_losses)} epochs, "
            f"loss {self.losses[-1]:.3g}, training accuracy {self.accuracies[-1]:.1%}, "
            f"{self.seconds:.0f} s)"
        )


def train(
    model: nn.Module,
    images: ArrayLike | Tensor,
    labels: ArrayLike | Tensor | SuppliedLabels,
    recipe: Recipe,
    *,
    seed: int,
    checkpoint: Path | str | None = None,
    accelerator: str = "auto",
    devices: int | str = 1,
    strategy: str = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Trained:
    """Train a network on images.

    Paper: Section 6.2, with the recipes ``cifar10`` and ``mnist`` of `RECIPES`.

    With a `checkpoint`, the state is written after every epoch. If a run is killed and started
    again with the same arguments, it resumes from there and, on a CPU with the same number of
    threads, ends with identical weights. A finished run is only read, or continued if the recipe
    has more epochs and a schedule that does not depend on their number.

    Parameters
    ----------
    model : torch.nn.Module
        Takes images in [0, 1] and returns logits. A copy is trained, the model is not changed. An
        `ImageClassifier` first gets the mean and standard deviation of `images`.
    images : array or tensor of uint8, shape (images, channels, height, width)
        The training images; they are kept in the memory of the device.
    labels : array or tensor of int, shape (images,), or SuppliedLabels
        From 0 to the number of logits minus 1. `SuppliedLabels` say the class of some images and
        the side alone of the others.
    recipe : Recipe
        Such as ``RECIPES["cifar10-quick"]``.
    seed : int
        The seed of the order of the images and of the augmentation.
    checkpoint : path, optional
        The file to write and to resume from. A file that is damaged or belongs to another recipe,
        seed, network or data set is refused.
    accelerator, devices, strategy
        Passed to `lightning_fabric.Fabric`: ``devices=4, strategy="ddp"`` trains on four GPUs, each
        with a quarter of every batch (and, as usual, batch normalisation over its quarter).
    threads : int, optional
        The number of threads on a CPU; by default PyTorch's own setting. On a busy machine 1 can be
        many times faster.
    progress : bool
        Show loss, accuracy and the remaining time.

    Examples
    --------
    >>> import numpy as np
    >>> from featavg.vision.evaluation import accuracy
    >>> from featavg.vision.models import SmallCNN
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(64) % 2
    >>> images = (rng.integers(99, size=(64, 1, 8, 8)) + 99 * labels[:, None, None, None])
    >>> net = SmallCNN(classes=2, size=8, width=4, rng=rng)
    >>> recipe = Recipe(epochs=5, batch=16, learning_rate=0.05)
    >>> done = train(net, images.astype(np.uint8), labels, recipe, seed=0)
    >>> accuracy(done.model, images.astype(np.uint8), labels)
    1.0
    """
    pixels = checked_images(images)
    targets = training_checks.targets(labels, len(pixels))
    checks.count("seed", seed, minimum=0)
    path = None if checkpoint is None else checkpoints.writable(Path(checkpoint))
    net = copy.deepcopy(model)
    if isinstance(net, ImageClassifier):
        training_checks.shapes(net, pixels, recipe)
        training_checks.classes(targets, net.classes)
        net.standardise(pixels)
    saved = identity = None
    if path is not None:
        identity = _identity(model, net, pixels, targets, recipe, seed)
        saved = Checkpoint.load(path, identity)
    if saved is not None and saved.epoch > recipe.epochs:
        raise InputError(
            f"epochs must be at least those of the checkpoint, {saved.epoch}; got {recipe.epochs}."
        )
    fabric = launched_fabric(recipe, accelerator, devices, strategy)
    shown = progress and fabric.is_global_zero
    with limited_threads(threads):
        run = _Run(net, pixels, targets, recipe, seed, fabric)
        if path is not None and saved is not None:
            _resume(run, saved, path)
        if path is not None and fabric.is_global_zero:
            clear_leftovers(path.parent, path.name)
        remaining = (recipe.epochs - run.epoch) * run.steps
        with ProgressReporter("training", remaining, enabled=shown) as reporter:
            while not recipe.ends(run.log_losses):
                run.one_epoch(reporter)
                if path is not None and identity is not None and fabric.is_global_zero:
                    run.state().save(path, identity)
        fabric.barrier()
    return Trained(
        model=net.eval(),
        recipe=recipe,
        log_losses=tuple(run.log_losses),
        accuracies=tuple(run.accuracies),
        seconds=run.seconds,
        resumed_from=0 if saved is None else saved.epoch,
    )


def _identity(
    model: nn.Module, net: nn.Module, images: Tensor, targets: Tensor, recipe: Recipe, seed: int
) -> Identity:
    """Return what a training depends on; `net` is the network at its start."""
    probed = copy.deepcopy(net)  # which may learn something from its first images
    some = to_model(probed, images[:_PROBES])
    with evaluating(probed):
        seen = behaviour(partial(logits_of, probed), some)
    hashes = {
        "recipe": recipe.fingerprint,
        "seed": str(seed),
        "data": fingerprint(images, targets),
        "network": model_fingerprint(model),
    }
    return Identity(hashes, seen, tolerance(some.dtype))


def _resume(run: _Run, saved: Checkpoint, path: Path) -> None:
    """Go back to a checkpoint, or refuse one that does not fit the network and the optimizer."""
    try:
        run.restore(saved)
    except Exception as error:
        raise checkpoints.unusable(path, type(error).__name__) from None


class _Run:
    """The state of a training."""

    def __init__(
        self,
        net: nn.Module,
        images: Tensor,
        labels: Tensor,
        recipe: Recipe,
        seed: int,
        fabric: Fabric,
    ) -> None:
        self.recipe, self.seed, self.fabric = recipe, seed, fabric
        self.format = memory_format(net)
        net.to(memory_format=self.format)  # type: ignore[call-overload]
        self.net, self.optimizer = fabric.setup(net, _optimizer(net, recipe))
        self.pool = ImagePool(images, labels, crop=recipe.crop, device=fabric.device)
        self.images, self.labels = len(images), labels
        self.steps = _steps(self.images, recipe.batch, fabric.world_size)
        self.epoch, self.seconds, self.steps_done = 0, 0.0, 0
        self.log_losses: list[float] = []
        self.accuracies: list[float] = []

    def restore(self, saved: Checkpoint) -> None:
        """Go back to a checkpoint."""
        self.epoch, self.seconds = saved.epoch, saved.seconds
        self.log_losses, self.accuracies = list(saved.log_losses), list(saved.accuracies)
        self.net.load_state_dict(saved.model)
        self.optimizer.load_state_dict(saved.optimizer)
        self.fabric.strategy.precision.load_state_dict(saved.precision)

    def state(self) -> Checkpoint:
        """Return the checkpoint of the current state."""
        return Checkpoint(
            epoch=self.epoch,
            model=dict(self.net.state_dict()),
            optimizer=self.optimizer.state_dict(),
            precision=self.fabric.strategy.precision.state_dict(),
            log_losses=self.log_losses,
            accuracies=self.accuracies,
            seconds=self.seconds,
        )

    def one_epoch(self, reporter: ProgressReporter) -> None:
        """Train for one pass over the data."""
        start = shown = time.monotonic()
        device, rank = self.fabric.device, self.fabric.global_rank
        recipe, epoch = self.recipe, self.epoch
        draw = Draw.of(self.images, recipe, self.seed, epoch, device)
        loss_based = recipe.schedule == "loss-based"
        log_scale = min(self.log_losses, default=0.0) if loss_based else 0.0
        before = copy.deepcopy(self.net.state_dict()) if loss_based else None
        # the sum of the losses, and the counts of correct and all images
        totals = torch.zeros(3, dtype=widest_float(device), device=device)
        self.net.train()
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            # for networks with their own randomness, such as dropout
            torch.manual_seed(
                int(np.random.default_rng([self.seed, epoch, 1 + rank]).integers(2**63))
            )
            for step, rate in enumerate(recipe.rates(epoch, self.steps, self.log_losses)):
                x, y = self.pool.batch(draw, self._part(step))
                if epoch < recipe.small_epochs:
                    x = nn.functional.interpolate(x, size=recipe.small_size, mode="area")
                x = in_layout(self._perturbed(x, y), self.format)
                totals += self._step(x, y, rate, log_scale)
                self.steps_done += 1
                if time.monotonic() - shown > _SECONDS_BETWEEN_LABELS or step == self.steps - 1:
                    shown = time.monotonic()
                    reporter.show(self.steps_done, self._label(totals, log_scale))
        loss, right, seen = cast(Tensor, self.fabric.all_reduce(totals, reduce_op="sum")).tolist()
        log_loss = self._log_loss() if loss_based else _log(loss / seen)
        if not log_loss < math.inf and not (loss_based and self.log_losses):
            raise InputError(
                f"learning_rate must be smaller because the loss became {loss} in epoch "
                f"{epoch + 1}; got {recipe.learning_rate!r}."
            )
        self.log_losses.append(log_loss)
        if before is not None and recipe.undoes(self.log_losses):
            self.net.load_state_dict(before)
        training_checks.finite(self.net.module, self.epoch + 1, recipe)
        self.accuracies.append(right / seen)
        self.epoch += 1
        self.seconds += time.monotonic() - start

    def _log_loss(self) -> float:
        """Return the logarithm of the mean loss of all images without augmentation.

        It is measured after the epoch, so that it includes the effect of the last step; infinity if
        it is not finite.
        """
        parts = []
        with torch.no_grad():
            self.net.eval()
            for x, y in self.pool.whole(self.recipe.batch):
                logits = self.net(in_layout(x, self.format))
                parts.append(log_losses(logits.to(widest_float(x.device)), y).logsumexp(0))
        value = float(torch.stack(parts).logsumexp(0)) - math.log(self.images)
        return math.inf if math.isnan(value) else value

    def _step(self, x: Tensor, y: Tensor, rate: float, log_scale: float) -> Tensor:
        """Take one step; return the sum of the losses, and the counts of correct and all images."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        logits: Tensor = self.net(x)
        if logits.ndim != 2:
            raise InputError(
                f"model must return logits for each image; got the shape {tuple(logits.shape)}."
            )
        training_checks.classes(self.labels, logits.shape[1])
        losses = scaled_losses(logits.to(widest_float(logits.device)), y, log_scale)
        self.fabric.backward(losses.mean())
        self.optimizer.step()
        right = hits(logits.detach(), y).sum()
        return torch.stack([losses.detach().sum(), right, torch.full_like(right, len(y))])

    def _perturbed(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the worst images within the radius of the recipe."""
        radius, steps = self.recipe.adversarial_radius, self.recipe.adversarial_steps
        if not radius:
            return x
        return perturbed(self.net.module, x, y, radius=radius, steps=steps, layout=self.format)

    def _part(self, step: int) -> slice:
        """Return the slice of the epoch's order that this device takes in a step."""
        world, rank, batch = self.fabric.world_size, self.fabric.global_rank, self.recipe.batch
        first = step * batch
        share = min(batch, self.images - first) // world
        return slice(first + rank * share, first + (rank + 1) * share)

    def _label(self, totals: Tensor, log_scale: float) -> str:
        loss, right, seen = totals.tolist()
        return (
            f"epoch {self.epoch + 1}/{self.recipe.epochs}, "
            f"loss {math.exp(log_scale) * loss / seen:.3g}, accuracy {right / seen:.1%}"
        )


def _log(loss: float) -> float:
    """Return the logarithm of a loss; infinity if the loss is NaN."""
    return math.inf if math.isnan(loss) else math.log(max(loss, _TINY))


def _steps(images: int, batch: int, devices: int) -> int:
    """Return the number of steps of an epoch, without a last one with fewer images than devices."""
    if batch % devices:
        raise InputError(
            f"batch must be a multiple of the number of devices; got {batch} and {devices}."
        )
    steps = math.ceil(images / batch)
    if 0 < images % batch < devices:
        steps -= 1
    if not steps:
        raise InputError(
            f"there must be at least as many images as devices; got {images} and {devices}."
        )
    return steps


def _optimizer(net: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe."""
    rate, decay = recipe.learning_rate, recipe.weight_decay
    if recipe.optimizer == "adam":
        betas = (recipe.momentum, _SECOND_BETA)
        return torch.optim.Adam(net.parameters(), lr=rate, betas=betas, weight_decay=decay)
    return torch.optim.SGD(net.parameters(), lr=rate, momentum=recipe.momentum, weight_decay=decay)
