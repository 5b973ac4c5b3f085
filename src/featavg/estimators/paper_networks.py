"""The base class of the paper's two networks as estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg import checks
from featavg.estimators._base import CertifiedClassifier
from featavg.estimators.fitting import Plan, Task, fit_head
from featavg.estimators.heads import Head


class HeadClassifier(CertifiedClassifier):
    """A network of the paper as a classifier: trained by gradient descent from tiny weights."""

    head_: Head
    n_iter_: int
    learning_rate_: float

    def __init__(
        self,
        width: int = 5,
        *,
        scale: str | None = "norm",
        class_weight: Any = None,
        robustness: float = 1.0,
        learning_rate: float | str = "auto",
        max_iter: int = 300,
        validation_fraction: float = 0.2,
        init_scale: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.scale = scale
        self.class_weight = class_weight
        self.robustness = robustness
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.init_scale = init_scale
        self.random_state = random_state

    def _plan(self, readout: str | None = None) -> tuple[Plan, float]:
        """Return the checked parameters of training, and the fraction of held-out points."""
        rate = self.learning_rate
        if isinstance(rate, str):
            checks.choice("learning_rate", rate, ("auto",))
        fraction = self._held_out_share()
        plan = Plan(
            width=checks.count("width", self.width),
            init_scale=checks.scale("init_scale", self.init_scale),
            readout=readout,
            learning_rate=None if isinstance(rate, str) else checks.scale("learning_rate", rate),
            max_iter=checks.count("max_iter", self.max_iter),
            robustness=checks.scale("robustness", self.robustness, zero=True),
        )
        return plan, fraction

    def _train(self, task: Task, plan: Plan, rng: np.random.Generator) -> None:
        self.head_, self.frontier_, self.learning_rate_ = fit_head(task, plan, rng=rng)
        self.n_iter_ = int(self.frontier_.values[self.frontier_.chosen])
