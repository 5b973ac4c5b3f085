"""The setting of training on the certified radius, and what is varied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.experiments.beyond.unequal_clusters import UnequalClusters
from featavg.lab.parameters import CheckedParameters, parameter

# What is varied: the label of the axis, and the values in units of the parameter.
SWEEPS: dict[str, tuple[str, tuple[float, ...]]] = {
    "pieces": ("pieces of each class", (0.2, 0.5, 1, 2)),
    "margin": ("margin over √(d/2)", (0.5, 1, 2)),
    "samples": ("training points", (0.1, 0.3, 1)),
    "noise": ("noise σ", (0.1, 0.5, 1, 2)),
}
_FEWEST = 20  # points, of which all clusters are likely to have some
STARTS = {"kmeans": ("k-means start", "fine"), "random": ("random start", "coarse")}


@dataclass(frozen=True, kw_only=True)
class Parameters(CheckedParameters):
    """The law of Section 6.1 with coarse labels, and the middle of what is varied."""

    clusters: int = parameter(10, "k, the number of clusters", least=4)
    dim: int = parameter(3072, "d, the dimension")
    samples: int = parameter(1000, "n, the number of training points", least=_FEWEST)
    noise: float = parameter(1.0, "sigma, the standard deviation of the noise")
    pieces: int = parameter(10, "affine pieces of each class")
    margin: float = parameter(1.0, "the margin of the loss, over √(d/2)")
    steps: int = parameter(1000, "steps of Adam, on 256 points each")
    descent_steps: int = parameter(300, "steps of gradient descent from averaged features")
    max_iter: int = parameter(900, "max_iter of RadiusClassifier, whose default it is")
    test_samples: int = parameter(100, "fresh points that radii are the median of")

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.law  # refuses what cannot be drawn

    @property
    def law(self) -> MultiCluster:
        """The paper's law."""
        return MultiCluster(clusters=self.clusters, dim=self.dim, noise=self.noise)

    @property
    def radii(self) -> tuple[float, float]:
        """The radii of averaged and of decoupled features, without noise."""
        return float(np.sqrt(self.dim / self.clusters)), float(np.sqrt(self.dim / 2))

    @property
    def learnable(self) -> float:
        """The median radius of decoupled features that were learned from n points with noise."""
        k = self.clusters
        clusters = UnequalClusters(
            np.full(k, self.samples / k), np.ones(k), self.law.signs, self.dim, 1.0, self.noise
        )
        return float(np.median(clusters.fine_radii(np.ones(k))))

    @property
    def parting(self) -> float:
        """The growth of differences of pieces, a unit of margin, where the largest one decides."""
        k, p = self.clusters, self.clusters // 2
        return float(np.sqrt(k * (1 - 1 / p)) / (self.dim * (1 + 1 / p)))

    def varied(self, sweep: str) -> list[Parameters]:
        """Return the settings of a sweep."""
        least = {"pieces": 1, "samples": _FEWEST}.get(sweep)
        values = [factor * getattr(self, sweep) for factor in SWEEPS[sweep][1]]
        return [
            replace(self, **{sweep: v if least is None else max(least, round(v))}) for v in values
        ]

    @property
    def times(self) -> list[int]:
        """The steps of gradient descent that are recorded."""
        return sorted({round(t) for t in np.geomspace(1, self.descent_steps, 12)})

    def draw(self, rng: np.random.Generator, **sampling: Any) -> tuple[Sample, Sample]:
        """Return training and fresh points; `sampling` are arguments of `MultiCluster.sample`."""
        sample = self.law.sample(self.samples, rng=rng, **sampling)
        return sample, sample.fresh(self.test_samples, rng=rng)
