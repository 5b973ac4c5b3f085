"""The training of one network in small portions."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from featavg.apps.play.geometry import two_of_each_side
from featavg.apps.play.learners import Trained, new_learner
from featavg.apps.play.pictures import slice_through
from featavg.apps.play.settings import TEST_POINTS, Settings
from featavg.data.law import Sample
from featavg.drawing.views import rounded
from featavg.errors import InputError
from featavg.robustness import Radii

_COMPUTING = 60.0  # seconds that one training may compute
_MEASURING = 6.0  # seconds that radii may take


class NetworkRun:
    """The training of one network, which is continued on request.

    Paper: equation (1). The steps are those of `featavg.descend` and `featavg.fast_forward`: the
    literal ones first, one position each, then one position for each goal of the fast-forward.
    Both networks are drawn although one is trained, so that each is the same with and without the
    other. Beyond the paper the second network may be affine pieces that are trained on their
    radius.

    Examples
    --------
    >>> run = NetworkRun(Settings(clusters=4, dim=400, samples=100, width=2, steps=50), "coarse")
    >>> run.advance(20, seconds=60)
    >>> run.position
    20
    >>> run.snapshot()["steps"]
    20.0
    """

    def __init__(
        self, settings: Settings, network: str, *, seconds_in_all: float | None = None
    ) -> None:
        drawn = settings.draw_networks(settings.seed, fewest_coordinates=True, dtype=settings.dtype)
        self.settings, self.train, self.test = settings, drawn.train, drawn.test
        self.learner = new_learner(settings, network, drawn)
        self._has_groups = network == "fine" and bool(settings.grouping)
        self._limit, self._computed = seconds_in_all, 0.0
        self._steps = self.learner.steps()
        self._now = next(self._steps)
        self._radii: tuple[tuple[int, float], _RadiusSearch] | None = None

    @property
    def position(self) -> int:
        """The position that is reached."""
        return self._now.position

    @property
    def is_between(self) -> bool:
        """Whether it is beyond that position, and has not reached the next one."""
        return self._now.is_between

    def advance(self, until: int, *, seconds: float) -> None:
        """Train up to the position `until`, but for no longer than about `seconds`."""
        start = time.monotonic()
        until = min(until, self.settings.end)
        while self.position < until and time.monotonic() - start < seconds:
            self._now = next(self._steps)
        self._computed += time.monotonic() - start
        limit = _COMPUTING if self._limit is None else self._limit
        if self._computed > limit and self.position < until:
            raise InputError(
                f"training was stopped because it had computed for {limit:.0f} seconds, which "
                "is what the playground allows; take fewer samples or steps."
            )

    def snapshot(self) -> dict[str, Any]:
        """Return what the page shows of the present position, without the radii."""
        return self.learner.snapshot(self._now, self.test)

    def data(self) -> dict[str, Any]:
        """Return the training points in two dimensions."""
        return two_of_each_side(self.train)

    def measure(self, *, seconds: float, points: int = TEST_POINTS) -> dict[str, Any]:
        """Compute exact radii for about `seconds`; return all that are known so far.

        It is complete when those of the first `points` fresh points are known.
        """
        return self._radius_search().advance(seconds, min(points, len(self.test)))

    def radius(self, point: int) -> float:
        """Return the radius of one fresh point: 0 if misclassified, infinite if safe."""
        return float(self._radius_search().of_point(point).upper[0])

    def slice(self, point: int, reach: float) -> dict[str, Any] | None:
        """Return the plane through one fresh point, its averaged attack and its exact one.

        The picture holds a circle of the radius `reach` around the point.
        """
        search = self._radius_search()
        # along the averaged direction, decoupled features fall behind at sqrt(d k) / 2
        longest = 0.7 * self.settings.predicted[1] * math.sqrt(2 * self.settings.clusters)
        radii = search.of_point(point)
        in_plane = search.trained.in_plane
        return slice_through(in_plane, self.test, point, radii, longest=longest, reach=reach)

    def _radius_search(self) -> _RadiusSearch:
        """Return the search for the radii at the present position."""
        now = (self.position, self._now.log_time)
        if self._radii is None or self._radii[0] != now:
            trained = self.learner.trained(self._now)
            self._radii = (now, _RadiusSearch(trained, self.test, self._has_groups))
        return self._radii[1]


class _RadiusSearch:
    """The exact radii of the fresh points, computed in portions."""

    def __init__(self, trained: Trained, test: Sample, has_groups: bool) -> None:
        self.trained, self._test, self._has_groups = trained, test, has_groups
        self._lower, self._upper = np.empty(0), np.empty(0)
        self._exact, self._spent = 0, 0.0
        self._point: tuple[int, Radii] | None = None  # the last that was asked for alone

    def _is_complete(self, points: int) -> bool:
        return len(self._upper) >= points or self._spent > _MEASURING

    def compute(self, first: int, end: int) -> Radii:
        """Return the radii of some points."""
        return self.trained.radii(self._test.x[first:end], self._test.y[first:end])

    def of_point(self, point: int) -> Radii:
        """Return the radius of one point."""
        if self._point is None or self._point[0] != point:
            self._point = point, self.compute(point, point + 1)
        return self._point[1]

    def advance(self, seconds: float, points: int) -> dict[str, Any]:
        """Compute the radii of as many of `points` as take about `seconds`; return all known."""
        if not self._is_complete(points):
            done, start = len(self._upper), time.monotonic()
            # the first portion measures how long a point takes: few points if many neurons
            first = int(np.clip(10_000 // self.trained.size**2, 8, len(self._test)))
            more = max(4, int(seconds * done / self._spent)) if done else first
            found = self.compute(done, min(done + more, points))
            self._lower = np.append(self._lower, found.lower)
            self._upper = np.append(self._upper, found.upper)
            self._exact += int(found.exact.sum())
            self._spent += time.monotonic() - start
        return {
            "lower": rounded(np.sort(self._lower), 5),
            "upper": rounded(np.sort(self._upper), 5),
            "exact": self._exact,
            "points": len(self._upper),
            "median": rounded(np.median(self._upper), 5),
            "complete": self._is_complete(points),
            **({"groups": self._groups()} if self._has_groups else {}),
        }

    def _groups(self) -> list[list[float] | None]:
        """Return a tenth, the median and nine tenths of the radii of each label's points."""
        labels = self._test.labels[: len(self._upper)]
        return [
            rounded(np.quantile(own, (0.1, 0.5, 0.9)), 5) if len(own) else None
            for own in (self._upper[labels == g] for g in range(len(self._test.label_signs)))
        ]
