"""The classifiers that an audit trains and compares."""

from __future__ import annotations

from typing import Any

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.auditing.geometry import Geometry
from featavg.auditing.heldout import HeldOut, Network
from featavg.auditing.points import Points
from featavg.auditing.suggestions import subclasses_of, suggest_labels
from featavg.estimators import AveragingClassifier, DecoupledClassifier, RadiusClassifier
from featavg.progress import ProgressReporter

_LABELS_OF_A_SUBCLASS = 2  # are nearly as good as all, see the experiment label-supply


class Classifiers:
    """The classifiers of an audit.

    Parameters
    ----------
    direct : bool
        Whether a `RadiusClassifier` is one of them.
    random_state : int
        The seed of each.
    progress : bool
        Whether to report progress on standard error, inside of ``with classifiers.reporter``.
    """

    coarse: AveragingClassifier
    fine: DecoupledClassifier

    def __init__(self, direct: bool, random_state: int, progress: bool) -> None:
        self._direct = RadiusClassifier(random_state=random_state) if direct else None
        self._random_state = random_state
        self.reporter = ProgressReporter("audit", 6 if direct else 4, enabled=progress)

    def fit(self, x: FloatArray, labels: Any, finer: Any) -> None:
        """Train all of them."""
        self.reporter.show(0, "training AveragingClassifier on coarse labels")
        self.coarse = AveragingClassifier(random_state=self._random_state).fit(x, labels)
        self.reporter.show(1, "training DecoupledClassifier on subclasses")
        self.fine = DecoupledClassifier(random_state=self._random_state).fit(x, labels, finer)
        if self._direct is not None:
            self.reporter.show(2, "training RadiusClassifier on coarse labels")
            self._direct.fit(x, labels)

    def measure(self, held: HeldOut, geometry: Geometry) -> tuple[Network, Network, Network | None]:
        """Measure all of them on held-out points."""
        models = [self.coarse, self.fine, *([] if self._direct is None else [self._direct])]
        measured: list[Network] = []
        for model in models:
            done = len(models) + len(measured)
            self.reporter.show(done, f"radii of {type(model).__name__} on held-out points")
            head = model.head_.after(model.scaling_)
            measured.append(held.network(head, geometry, measured[0] if measured else None))
        self.reporter.show(2 * len(models), "audit")
        coarse, fine, *direct = measured
        return coarse, fine, direct[0] if direct else None

    def points(self, x: FloatArray, labels: Any, finer: Any, index: IntArray) -> Points:
        """Return some of the points with their subclasses: as given, or the most likely ones."""
        own = labels[index]
        if finer is not None or not len(index):
            return Points(index, own.tolist(), [] if finer is None else finer[index].tolist())
        scaled = self.fine.scaling_.apply(x[index].astype(np.float64))
        codes = subclasses_of(self.fine, scaled, own, np.random.default_rng(0))  # draws nothing
        names = [self.fine.subclasses_.names[code] for code in codes]
        return Points(index, own.tolist(), names)

    def suggested(
        self, x: FloatArray, labels: Any, train: IntArray, budget: int | None
    ) -> IntArray:
        """Return training points to label finely; none if no class has subclasses."""
        found = self.fine.subclasses_
        if len(found.names) == len(found.counts):
            return np.zeros(0, dtype=np.int64)
        wanted = _LABELS_OF_A_SUBCLASS * len(found.names) if budget is None else budget
        seed = self._random_state
        chosen = suggest_labels(self.fine, x[train], labels[train], wanted, random_state=seed)
        return train[chosen]
