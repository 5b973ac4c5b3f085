"""One network in training, a little at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg.apps.play.pictures import rounded, slice_through, snapshot
from featavg.apps.play.settings import TEST_POINTS, Settings
from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet
from featavg.robustness import Radii, exact_radii
from featavg.training.descent import cheaper_method, descent_steps
from featavg.training.fast_forward import fast_forward_steps
from featavg.training.state import new_state
from featavg.training.trajectory import Recorder, Trajectory

_TOLERANCE = 0.05  # of the fast-forward: λ is then within about a percent
_MAX_NODES = 4000
_COMPUTING = 60.0  # seconds that one training may compute
_MEASURING = 6.0  # seconds that radii may take


@dataclass(frozen=True)
class Start:
    """What training starts from: points, fresh points and one of the two networks."""

    train: Sample
    test: Sample
    net: TwoLayerNet

    @classmethod
    def of(cls, settings: Settings, network: str) -> Start:
        """Draw everything, from random streams of its own each.

        Both networks are drawn whichever is wanted, so that each is the same with and without
        the other, and their initial weights are independent.
        """
        data, coarse, fine, _ = np.random.default_rng(settings.seed).spawn(4)
        train = settings.law.sample(
            settings.samples,
            rng=data,
            coordinates="span" if settings.in_span else "ambient",
            dtype=settings.dtype,
            reserve=settings.reserve,
        )
        test = train.fresh(TEST_POINTS, rng=data)
        scale = settings.weight_scale
        binary = BinaryNet.init(
            train,
            width=settings.width,
            weight_scale=scale,
            bias_scale=settings.bias_scale,
            rng=coarse,
        )
        # the argmax readout, because its radii are exact
        multi = MultiClassNet.init(
            train, width=settings.fine_width, weight_scale=scale, rng=fine, readout="argmax"
        )
        return cls(train, test, binary if network == "coarse" else multi)


class NetworkRun:
    r"""The training of one network, which goes on for a while whenever it is asked to.

    Paper: equation (1). The steps are those of `featavg.descend` and `featavg.fast_forward`: the
    literal ones first, one position each, then one position for each goal of the fast-forward.

    Examples
    --------
    >>> run = NetworkRun(Settings(clusters=4, dim=400, samples=100, width=2, steps=50), "coarse")
    >>> run.advance(20, seconds=60)
    >>> run.position
    20
    >>> run.snapshot()["steps"]
    20.0
    """

    def __init__(self, settings: Settings, network: str) -> None:
        self.settings, self.network = settings, network
        self._start = Start.of(settings, network)
        net, train = self._start.net, self._start.train
        steps = settings.literal_steps + 1000 * bool(settings.goals)
        with np.errstate(over="ignore", invalid="ignore"):  # found on the way
            self._state = new_state(cheaper_method(net, train, steps), net, train)
        self.position = 0
        self.is_between = False
        self._computed = 0.0
        self._log_time = -math.inf
        self._outputs: FloatArray = np.empty(0)
        self._walk = self._positions()
        next(self._walk)
        self._known: tuple[tuple[int, float], _Measured] | None = None

    def _positions(self) -> Iterator[None]:
        """Yield after every step, short or long, with the position where it is."""
        settings, start, rate = self.settings, self._start, self.settings.learning_rate
        literal = settings.literal_steps
        walk = descent_steps(start.net, start.train, self._state, learning_rate=rate, steps=literal)
        for step, outputs in enumerate(walk):
            self.position, self._outputs = step, outputs
            self._log_time = math.log(rate) + math.log(step) if step else -math.inf
            yield
        goals = np.log([rate]) + np.log(np.array(settings.goals))
        leaps = fast_forward_steps(
            start.net,
            start.train,
            self._state,
            learning_rate=rate,
            goals=np.concatenate([[self._log_time], goals]),
            tolerance=_TOLERANCE,
        )
        for self._log_time, self._outputs in leaps:
            reached = literal + int((self._log_time >= goals).sum())
            self.is_between = reached == self.position
            self.position = reached
            yield

    def advance(self, until: int, *, seconds: float) -> None:
        """Go on to the position `until`, but for no longer than about `seconds`."""
        start = time.monotonic()
        until = min(until, self.settings.end)
        while self.position < until and time.monotonic() - start < seconds:
            next(self._walk)
        self._computed += time.monotonic() - start
        if self._computed > _COMPUTING and self.position < until:
            raise InputError(
                f"training was stopped because it had computed for {_COMPUTING:.0f} seconds, which "
                "is what the playground allows; take fewer samples or steps."
            )

    def _trajectory(self) -> Trajectory:
        """Return a trajectory of this one moment."""
        start = self._start
        recorder = Recorder(start.net, start.train, self.settings.learning_rate)
        recorder.add(self._log_time, self._outputs, self._state)
        return recorder.finish("playground")

    def snapshot(self) -> dict[str, Any]:
        """Return what the page shows of this moment, but for what takes long."""
        return snapshot(self._trajectory(), self._start.test)

    def measure(self, *, seconds: float) -> dict[str, Any]:
        """Go on computing exact radii for about `seconds`; return all that are known so far."""
        measured = self._measured()
        measured.go_on(seconds)
        return measured.summary()

    def slice(self, point: int) -> dict[str, Any] | None:
        """Return the plane through one fresh point, its averaged attack and its exact one."""
        measured = self._measured()
        # along the averaged direction, decoupled features fall behind at sqrt(d k) / 2
        longest = 0.7 * self.settings.setting.predicted[1] * math.sqrt(2 * self.settings.clusters)
        return slice_through(measured.net, self._start.test, point, measured.radii(point), longest)

    def _measured(self) -> _Measured:
        """Return what is known of the radii here."""
        now = (self.position, self._log_time)
        if self._known is None or self._known[0] != now:
            self._known = (now, _Measured(self._trajectory().net, self._start.test))
        return self._known[1]


class _Measured:
    """The radii of one network, as far as they are known."""

    def __init__(self, net: TwoLayerNet, test: Sample) -> None:
        self.net, self._test = net, test
        self._parts: list[Radii] = []
        self._spent = 0.0

    @property
    def _done(self) -> int:
        return sum(map(len, self._parts))

    @property
    def _is_complete(self) -> bool:
        return self._done == len(self._test) or self._spent > _MEASURING

    def go_on(self, seconds: float) -> None:
        """Compute the radii of more points, about as many as take `seconds`."""
        if self._is_complete:
            return
        done = self._done
        # the first ones tell how long one takes; the more neurons, the fewer, to be quick
        first = int(np.clip(10_000 // len(self.net.weights) ** 2, 8, len(self._test)))
        more = max(4, int(seconds * done / self._spent)) if done else first
        start = time.monotonic()
        self._parts.append(self._compute(done, done + more))
        self._spent += time.monotonic() - start

    def _compute(self, first: int, end: int) -> Radii:
        x, y = self._test.x[first:end], self._test.y[first:end]
        return exact_radii(self.net, x, y, max_nodes=_MAX_NODES, jobs=1)

    def radii(self, point: int) -> Radii:
        """Return the radius of one point, which may be known already."""
        first = 0
        for part in self._parts:
            if point < first + len(part):
                own = slice(point - first, point - first + 1)
                return Radii(part.lower[own], part.upper[own], part.perturbations[own])
            first += len(part)
        return self._compute(point, point + 1)

    def summary(self) -> dict[str, Any]:
        """Return what the page draws the curve from; infinity is null."""
        lower = np.concatenate([part.lower for part in self._parts])
        upper = np.concatenate([part.upper for part in self._parts])
        return {
            "lower": rounded(np.sort(lower), 5),
            "upper": rounded(np.sort(upper), 5),
            "exact": int((lower == upper).sum()),
            "points": len(upper),
            "median": rounded(np.median(upper), 5),
            "complete": self._is_complete,
        }
