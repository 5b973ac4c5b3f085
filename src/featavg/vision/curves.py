"""Robust curves of image classifiers: all attacks on all objectives, and the worst case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from featavg import checks
from featavg.array_files import Arrays, Expected
from featavg.array_store import ArrayStore
from featavg.arrays import BoolArray, FloatArray
from featavg.errors import InputError
from featavg.progress import ProgressReporter
from featavg.robustness.curve import RobustCurve
from featavg.vision.attack_store import attack_store
from featavg.vision.attacks import checked_radii, pgd_batch
from featavg.vision.evaluation import evaluating
from featavg.vision.masking import warn_of_masked_gradients
from featavg.vision.minimal import minimal_norms
from featavg.vision.objectives import OBJECTIVES, TARGETED
from featavg.vision.target import Positive, Target

_FORMAT = "featavg image attack 2"
_STRIDES_OF_WORST = (2.0, 4.0)


@dataclass(frozen=True, eq=False, repr=False)
class ImageCurves:
    """The robustness of an image classifier, as measured by attacks.

    Attributes
    ----------
    radii : array, shape (radii,)
        In rising order.
    norms : dict of arrays, shape (images,)
        For each objective, and as "worst" for all of them: the norm of the smallest perturbation
        found by any attack; 0 where the decision is wrong without one, infinity where none was
        found.
    pgd : dict of arrays, shape (images,)
        For each objective, the smallest norm that PGD alone found.
    last, last_own : bool arrays, shape (images, radii)
        The last iterates of plain PGD on the network's own cross-entropy, most likely the attack of
        the paper's Figure 3: where the binary decision is wrong, and where the network's own class
        is. See `PgdAttack`.
    """

    radii: FloatArray
    norms: dict[str, FloatArray]
    pgd: dict[str, FloatArray]
    last: BoolArray
    last_own: BoolArray

    @property
    def curves(self) -> dict[str, RobustCurve]:
        """The robust curve of each objective, and "worst", from which conclusions are drawn."""
        return {name: self._curve(norms, name) for name, norms in self.norms.items()}

    @property
    def worst(self) -> RobustCurve:
        """The robust curve against all attacks."""
        return self.curves["worst"]

    def _curve(self, norms: FloatArray, name: str) -> RobustCurve:
        method = "worst" if name == "worst" else "pgd and minimal-norm"
        return RobustCurve(self.radii, norms, np.zeros(len(norms)), method, name)

    def __repr__(self) -> str:
        halves = ", ".join(f"{n} {c.half_radius:.4g}" for n, c in self.curves.items())
        return (
            f"ImageCurves({len(self.norms['worst'])} images, {len(self.radii)} radii, "
            f"half radius: {halves})"
        )


@dataclass(frozen=True)
class _Settings:
    """The settings that the results depend on, besides network and data."""

    radii: list[float]
    positive: tuple[int, ...]
    objectives: tuple[str, ...]
    pgd_steps: int
    restarts: int
    steps: int
    seed: int
    batch: int


def robust_curves(
    model: nn.Module,
    images: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    *,
    radii: ArrayLike,
    positive: Positive = None,
    objectives: Sequence[str] | None = None,
    pgd_steps: int = 40,
    restarts: int = 1,
    steps: int = 100,
    seed: int = 0,
    batch: int = 100,
    folder: Path | str | None = None,
    progress: bool = False,
) -> ImageCurves:
    """Attack an image classifier on every objective and return the robust curves.

    Paper: Figure 3, MNIST and CIFAR-10. Each objective is attacked by `pgd_l2` at each radius and
    then by `minimal_norms` with one run, which also starts from the results of PGD. The worst case
    follows the decision boundary from the nearest result of any objective, and adds two runs of
    `minimal_norms` on the readout with longer steps.

    With a `folder`, the results of each objective on each batch are written there atomically, under
    a hash of network, images and settings, which ``about.json`` lists. If a run is killed and
    started again with the same arguments, it resumes from there and, on a CPU with the same number
    of threads, gives the same numbers.

    Parameters
    ----------
    model, images, labels, positive, restarts, seed, batch, progress
        As for `pgd_l2`.
    radii : array-like
        The radii of the PGD attacks and of the curves.
    objectives : sequence of str, optional
        By default "cross-entropy", "readout" and "probability", or "readout" alone for a network
        with two logits. "targeted" may be added: PGD then has a run towards each class of the other
        side, and the minimal-norm attack leads to the class with the largest logit among them.
    pgd_steps, steps : int
        The number of steps of `pgd_l2` and of `minimal_norms`.
    folder : path, optional
        The folder of saved results.

    Examples
    --------
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    >>> net[1].weight.data = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    >>> image = torch.tensor([0.6, 0.6, 0.4, 0.4]).reshape(1, 1, 2, 2)
    >>> curves = robust_curves(net, image, [0], radii=[0.19, 0.21], pgd_steps=5, steps=10)
    >>> curves.worst.accuracy
    array([1., 0.])
    """
    target = Target.of(model, images, labels, positive)
    # with two logits all objectives are monotone functions of the difference of the logits
    usual = ("readout",) if len(target.positive) == 2 else OBJECTIVES
    chosen = usual if objectives is None else tuple(objectives)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"objectives must be different and not empty; got {objectives!r}.")
    settings = _Settings(
        radii=checked_radii(radii).tolist(),
        positive=tuple(torch.nonzero(target.positive)[:, 0].tolist()),
        objectives=tuple(
            checks.choice("objectives", name, (*OBJECTIVES, TARGETED)) for name in chosen
        ),
        pgd_steps=checks.count("pgd_steps", pgd_steps),
        restarts=checks.count("restarts", restarts),
        steps=checks.count("steps", steps),
        seed=checks.count("seed", seed, minimum=0),
        batch=checks.count("batch", batch),
    )
    store = ArrayStore(None)
    if folder is not None:
        store = attack_store(Path(folder), target, _FORMAT, asdict(settings))
    batches = math.ceil(len(target) / settings.batch)
    parts = []
    stages = len(settings.objectives) + 1
    with evaluating(model), ProgressReporter("attack", batches * stages, enabled=progress) as shown:
        for index in range(batches):
            run = _BatchRun(target, settings, store, index)
            parts.append(run.result(shown.advance))
            shown.show((index + 1) * stages, "attack")
    found = _joined(parts, settings)
    warn_of_masked_gradients(target, found.norms["worst"], settings.batch)
    return found


@dataclass(frozen=True)
class _BatchRun:
    """All attacks on one batch; results that are in the store are not computed again."""

    target: Target
    settings: _Settings
    store: ArrayStore
    index: int

    def result(self, advance: Callable[[], None]) -> Arrays:
        """Return the norms of each objective and of the worst case."""
        name = f"batch-{self.index:05d}"
        stages = [f"{name}-{objective}" for objective in self.settings.objectives]
        result = self.store.get(name, self._expected(), lambda: self._run(stages, advance))
        self.store.remove(stages)  # with large images, which only a resumed run needs
        return result

    def _run(self, stages: Sequence[str], advance: Callable[[], None]) -> Arrays:
        """Attack every objective, and then the worst case."""
        s = self.settings
        batch = self.target.batch(self.index, s.batch)
        collected: Arrays = {}
        found = []
        for objective, stage in zip(s.objectives, stages, strict=True):
            expected = _expected_of(objective, s, len(batch))
            expected["adversarial"] = Expected("f", tuple(batch.x.shape))
            arrays = self.store.get(stage, expected, partial(self._attack, batch, objective))
            found.append(torch.from_numpy(arrays.pop("adversarial")).to(batch.x))
            collected |= {f"{objective} {key}": value for key, value in arrays.items()}
            advance()
        nearest = _nearest([collected[f"{o} norms"] for o in s.objectives], found)
        worst = minimal_norms(batch, "readout", s.steps, [nearest], _STRIDES_OF_WORST)
        return collected | {"worst norms": worst.arrays()["norms"]}

    def _expected(self) -> dict[str, Expected]:
        """Return the arrays of the result."""
        s = self.settings
        images = len(self.target.batch(self.index, s.batch))
        return {
            f"{objective} {name}": wanted
            for objective in s.objectives
            for name, wanted in _expected_of(objective, s, images).items()
        } | {"worst norms": Expected("f", (images,))}

    def _attack(self, batch: Target, objective: str) -> Arrays:
        s = self.settings
        # only plain PGD is run to the end on images for which it has succeeded
        full = objective == _plain(s.objectives)
        seed = (s.seed, self.index)
        pgd = pgd_batch(batch, objective, np.array(s.radii), s.pgd_steps, s.restarts, full, seed)
        start = torch.from_numpy(pgd.adversarial).to(batch.x)
        aimed = batch.aimed_at(0) if objective == TARGETED else batch
        minimal = minimal_norms(aimed, objective, s.steps, [start], [1.0])
        arrays: Arrays = minimal.arrays() | {"pgd": pgd.norms}
        if pgd.last is not None and pgd.last_own is not None:
            arrays |= {"last": pgd.last, "last_own": pgd.last_own}
        return arrays


def _expected_of(objective: str, settings: _Settings, images: int) -> dict[str, Expected]:
    """Return the arrays that attacks on an objective leave, besides the images."""
    expected = {name: Expected("f", (images,)) for name in ("norms", "pgd")}
    if objective == _plain(settings.objectives):
        grid = Expected("b", (images, len(settings.radii)))
        expected |= {"last": grid, "last_own": grid}
    return expected


def _nearest(norms: Sequence[FloatArray], images: Sequence[Tensor]) -> Tensor:
    """Return, for each image, the result of the objective with the smallest norm."""
    winner = torch.from_numpy(np.argmin(norms, axis=0)).to(images[0].device)
    return torch.stack(list(images))[winner, torch.arange(len(winner), device=winner.device)]


def _plain(objectives: Sequence[str]) -> str:
    """Return the objective of plain PGD: the cross-entropy, or the first one."""
    return "cross-entropy" if "cross-entropy" in objectives else objectives[0]


def _joined(parts: Sequence[Arrays], settings: _Settings) -> ImageCurves:
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    names = (*settings.objectives, "worst")
    plain = _plain(settings.objectives)
    return ImageCurves(
        radii=np.array(settings.radii),
        norms={name: whole[f"{name} norms"] for name in names},
        pgd={name: whole[f"{name} pgd"] for name in settings.objectives},
        last=whole[f"{plain} last"],
        last_own=whole[f"{plain} last_own"],
    )
