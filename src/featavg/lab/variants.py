"""Variations of the synthetic setting that the paper leaves open or does not name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from featavg.data.law import Sample
from featavg.data.multicluster import MultiCluster
from featavg.lab.parameters import parameter
from featavg.lab.setting import CoarseSetting
from featavg.training.rule import Adam, GradientDescent, Rule, SignDescent

_RULES: dict[str, type[Rule]] = {"gd": GradientDescent, "adam": Adam, "sign": SignDescent}


@dataclass(frozen=True, kw_only=True)
class VariedSetting(CoarseSetting):
    """The optimiser, the orientation of the centres and the sizes of the clusters.

    The defaults are those of the paper's text: gradient descent, whose results do not depend on the
    orientation, and clusters that are drawn for each point.
    """

    optimiser: Literal["gd", "adam", "sign"] = parameter(
        "gd", "gradient descent, Adam or sign descent, at the same learning rate and steps"
    )
    orientation: Literal["random", "axes", "signs"] = parameter(
        "random", "centres in a random frame, along the axes, or with coordinates ±1"
    )
    counts: Literal["drawn", "balanced"] = parameter(
        "drawn", "draw the cluster of each point, or give all clusters the same number"
    )

    @property
    def law(self) -> MultiCluster:
        """The data law."""
        balanced = self.counts == "balanced"
        return replace(super().law, orientation=self.orientation, balanced=balanced)

    @property
    def rule(self) -> Rule:
        """The rule of training."""
        return _RULES[self.optimiser]()

    @property
    def trains_by_gradient_descent(self) -> bool:
        """Whether the optimiser is the paper's, whose theory predicts the results."""
        return self.optimiser == "gd"

    def draw(self, seed: int, **sampling: Any) -> tuple[Sample, Sample]:
        """Return the training points and the fresh points of a seed.

        In ambient coordinates if the optimiser depends on the orientation.
        """
        if not self.trains_by_gradient_descent:
            sampling = {"coordinates": "ambient"} | sampling
        return super().draw(seed, **sampling)
