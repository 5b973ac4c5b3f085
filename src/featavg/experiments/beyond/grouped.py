"""Networks trained on label groups, and the radius of every group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import FloatArray
from featavg.data.grouping import Grouping
from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.errors import InputError
from featavg.networks.multiclass import MultiClassNet
from featavg.robustness import exact_radii
from featavg.theory.granularity import FinitePrediction, argmax_radii, granularity_radii
from featavg.training.descent import descend
from featavg.training.fast_forward import fast_forward
from featavg.training.trajectory import Trajectory


@dataclass(frozen=True)
class Case:
    """A law and a way of training, and the label groups that are tried there.

    Attributes
    ----------
    name, title : str
        For quantities and for readers.
    dim, samples, test_samples : int
        d, and the numbers of training and of fresh points.
    groupings : tuple of Grouping
        The label groups, all of the same number of clusters.
    learning_rate, init_scale, time : float
        The learning rate, the scale of initial weights and the learning rate times the steps.
    norms : tuple of float or None
        The norms of the centres, in units of √d.
    balanced : bool
        Whether all clusters have the same number of points.
    leaps : float or None
        The tolerance of `fast_forward`; None for single steps.
    """

    name: str
    title: str
    dim: int
    samples: int
    test_samples: int
    groupings: tuple[Grouping, ...]
    learning_rate: float
    init_scale: float
    time: float
    signal: float = 1.0
    noise: float = 1.0
    norms: tuple[float, ...] | None = None
    balanced: bool = True
    biases: bool = False
    leaps: float | None = None

    @property
    def at_scale(self) -> bool:
        """Whether it has the hyper-parameters of the theorems."""
        return self.name.startswith("theorem")

    @property
    def clusters(self) -> int:
        """The number k of clusters."""
        return self.groupings[0].clusters

    def law(self, grouping: Grouping) -> MultiCluster:
        """Return the law, whose sides are those of the label groups."""
        return MultiCluster(
            clusters=self.clusters,
            dim=self.dim,
            positive=sum(grouping.positive),
            signal=self.signal,
            noise=self.noise,
            norms=self.norms,
            balanced=self.balanced,
        )

    def law_radii(self) -> FloatArray:
        """Return the radius that the granularity law gives every group of every grouping."""
        return np.concatenate([granularity_radii(g, self.law(g)) for g in self.groupings])

    def groups(self) -> list[tuple[str, int, int, int]]:
        """Return the grouping, the number, and the own and largest opposing size of each group."""
        return [
            (str(g), i + 1, int(g.sizes[i]), int(g.sizes[g.opposing(i)].max()))
            for g in self.groupings
            for i in range(len(g))
        ]

    def train(self, grouping: Grouping, rng: np.random.Generator) -> Trajectory:
        """Draw points with these labels and train a class for each group."""
        law = self.law(grouping)
        reserve = len(grouping)
        fits = self.clusters + self.samples + reserve < self.dim
        train = law.sample(
            self.samples, rng=rng, coordinates="span" if fits else "ambient", reserve=reserve
        ).grouped(grouping)
        net = MultiClassNet.init(
            train,
            width=1,
            weight_scale=self.init_scale,
            bias_scale=self.init_scale if self.biases else None,
            rng=rng,
            readout="argmax",
        )
        rate, steps = self.learning_rate, self.time / self.learning_rate
        if self.leaps is None:
            return descend(net, train, learning_rate=rate, steps=round(steps), record=2)
        return fast_forward(
            net, train, learning_rate=rate, steps=steps, tolerance=self.leaps, record=2
        )

    def prediction(self, grouping: Grouping, train: Sample, test: Sample) -> FloatArray:
        """Return the median radii that theory predicts for these numbers of points."""
        counts = np.bincount(train.cluster, minlength=self.clusters)
        finite = FinitePrediction(
            grouping, self.law(grouping), counts, self.time, biases=self.biases
        )
        shares = np.bincount(test.cluster, minlength=self.clusters).astype(np.float64)
        return finite.medians(shares)


def measure_groups(
    case: Case, grouping: Grouping, rng: np.random.Generator, searched: int
) -> dict[str, FloatArray]:
    """Train on one grouping; return the medians of each group, what theory says, and checks.

    `searched` is how many points have their radius computed by the general search as well.
    """
    run = case.train(grouping, rng)
    net, test = run.net, run.sample.fresh(case.test_samples, rng=rng)
    radii = argmax_radii(net, test.x, test.y)
    some = slice(0, searched)
    general = exact_radii(net, test.x[some], test.y[some], certificates=False, jobs=1)
    own = test.labels
    return {
        "radius": np.array([np.median(radii[own == g]) for g in range(len(grouping))]),
        "predicted": case.prediction(grouping, run.sample, test),
        "search_gap": np.array([_largest_gap(radii[some], general.upper)]),
        "accuracy": np.array([float((net.predict(test.x) == test.y).mean())]),
    }


def _largest_gap(radii: FloatArray, others: FloatArray) -> float:
    """Return the largest relative difference; 0 where both are 0."""
    larger = np.maximum(radii, others)
    return float((np.abs(radii - others) / np.where(larger > 0, larger, 1)).max(initial=0.0))


def whole_numbers(name: str, text: str, least: int) -> list[int]:
    """Return the whole numbers in a text, in order."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) >= least for part in parts):
        raise InputError(
            f"{name} must be whole numbers of at least {least} with commas between them; got "
            f"{text!r}."
        )
    return sorted({int(part) for part in parts})
