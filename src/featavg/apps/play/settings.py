"""What a visitor of the playground can set, and how far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np

from featavg import checks
from featavg.arrays import IntArray
from featavg.data.multicluster import MultiCluster
from featavg.errors import InputError
from featavg.lab.setting import SyntheticSetting
from featavg.training.trajectory import recorded_steps

NETWORKS = ("coarse", "fine")
TEST_POINTS = 100
"""How many fresh points radii are computed for."""

LITERAL_STEPS = 2000
"""Longer trainings are fast-forwarded; shorter ones take every step."""

FRAMES = 60
"""How many recorded times a training has, about."""

_MEMORY = 200e6  # bytes for one network, so that many visitors fit into a machine
_SECONDS = 25.0  # of training, estimated
_MULTIPLICATIONS = 3e9  # a second, on one core
_USUAL_LEAPS = 1000  # long steps that a fast-forward takes
_SINGLE_PRECISION_FROM = 4000


@dataclass(frozen=True)
class Knob:
    """One slider: what it sets, how far, and how the page names it."""

    label: str
    symbol: str
    low: float
    high: float
    log: bool
    help: str
    extra: bool = False  # shown only when asked for


def _knob(
    default: float | None,
    label: str,
    symbol: str,
    low: float,
    high: float,
    note: str,
    *,
    log: bool = False,
    extra: bool = False,
) -> Any:
    knob = Knob(label, symbol, low, high, log, note, extra)
    return field(default=default, metadata={"knob": knob})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that determines what the page shows: the same settings give the same numbers.

    Paper: the symbols of Sections 3 and 6.1; the defaults are the setting of Figure 2.

    Examples
    --------
    >>> Settings(clusters=4, dim=10**12).to_query()
    'clusters=4&dim=1000000000000'
    >>> Settings.from_query({"clusters": "4"}).positive
    2
    >>> Settings(dim=5)
    Traceback (most recent call last):
        ...
    featavg.errors.InputError: dim must be from 10 to 1e+12; got 5.
    """

    labels: Literal["both", "coarse", "fine"] = "both"
    clusters: int = _knob(10, "clusters", "k", 2, 30, "How many groups the points come in.")
    dim: int = _knob(3072, "dimension", "d", 10, 1e12, "Costs nothing: try a trillion.", log=True)
    samples: int = _knob(1000, "samples", "n", 10, 10_000, "Training points.", log=True)
    width: int = _knob(5, "width", "m", 1, 30, "Neurons for each side of the 2-class network.")
    learning_rate: float = _knob(
        1e-3, "learning rate", "η", 1e-24, 10, "The length of a gradient step.", log=True
    )
    weight_scale: float = _knob(
        1e-5, "initialisation", "σ_w", 1e-15, 1, "The size of the initial weights.", log=True
    )
    snr: float = _knob(
        1.0, "signal-to-noise", "α/σ", 0.1, 100, "How far centres stand out of the noise.", log=True
    )
    cosine: float = _knob(0.0, "cosine of centres", "c", -1, 0.95, "0: they are orthogonal.")
    positive: int = _knob(
        None, "split", "|J₊|", 1, 29, "How many of the clusters are on the positive side."
    )
    steps: float = _knob(
        100, "training steps", "T", 1, 1e30, "Above 2000 they are fast-forwarded.", log=True
    )
    fine_width: int = _knob(
        1, "neurons per class", "h", 1, 4, "Of the network with fine labels.", extra=True
    )
    bias_scale: float = _knob(
        None,
        "initial biases",
        "σ_b",
        1e-15,
        1,
        "The size of the initial biases; as the weights unless set.",
        log=True,
        extra=True,
    )
    seed: int = _knob(0, "seed", "s", 0, 10**6, "Another seed, another draw.", extra=True)
    literal: int | None = None  # so many steps one by one before the rest is fast-forwarded

    def __post_init__(self) -> None:
        checks.choice("labels", self.labels, ("both", *NETWORKS))
        filled: dict[str, Any] = {
            "positive": (self.clusters + 1) // 2 if self.positive is None else self.positive,
            "bias_scale": self.weight_scale if self.bias_scale is None else self.bias_scale,
        }
        for name, knob in KNOBS.items():
            value = filled.get(name, getattr(self, name))
            object.__setattr__(self, name, _within(name, value, knob))
        object.__setattr__(self, "steps", float(round(self.steps)))  # there is no half a step
        whole = min(self.steps, float(LITERAL_STEPS))
        usual = int(whole) if self.steps <= LITERAL_STEPS else 0
        literal = (
            usual if self.literal is None else checks.count("literal", self.literal, minimum=0)
        )
        object.__setattr__(self, "literal", min(literal, int(whole)))
        _ = self.setting  # refuses what the law refuses
        self._check_costs()

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Settings:
        """Return the settings that the address of a page holds."""
        kinds = {f.name: f for f in fields(cls)}
        given: dict[str, Any] = {}
        for name, text in query.items():
            if name not in kinds:
                raise InputError(f"the playground has no setting {name[:40]!r}.")
            is_text = name == "labels"
            given[name] = text if is_text else _parsed(name, text)
        return cls(**given)

    def to_query(self) -> str:
        """Return what differs from the paper's setting, as the address of a page holds it."""
        usual = Settings()
        filled = {"positive": (self.clusters + 1) // 2, "bias_scale": self.weight_scale}
        filled["literal"] = int(self.steps) if self.steps <= LITERAL_STEPS else 0
        return "&".join(
            f"{name}={_text(value)}"
            for name, value in asdict(self).items()
            if value != filled.get(name, getattr(usual, name))
        )

    @property
    def networks(self) -> tuple[str, ...]:
        """Which networks are trained."""
        return NETWORKS if self.labels == "both" else (self.labels,)

    @cached_property
    def setting(self) -> SyntheticSetting:
        """The same as a setting of the paper's experiments, of which steps are another matter."""
        return SyntheticSetting(
            clusters=self.clusters,
            positive=self.positive,
            dim=self.dim,
            signal=1.0,
            noise=1.0 / self.snr,
            cosine=self.cosine,
            samples=self.samples,
            test_samples=TEST_POINTS,
            width=self.width,
            fine_width=self.fine_width,
            learning_rate=self.learning_rate,
            weight_scale=self.weight_scale,
            bias_scale=self.bias_scale,
        )

    @property
    def law(self) -> MultiCluster:
        """The data law."""
        return self.setting.law

    @property
    def literal_steps(self) -> int:
        """How many steps are taken one by one."""
        return self.literal or 0

    @cached_property
    def goals(self) -> tuple[float, ...]:
        """The steps at which the fast-forward is looked at; empty where there is none.

        Evenly spaced in log-time, behind the literal steps.
        """
        if self.steps <= self.literal_steps:
            return ()
        start = max(self.literal_steps, 1)
        spaced = np.geomspace(start, self.steps, FRAMES)
        return tuple(float(step) for step in spaced if step > self.literal_steps)

    @property
    def end(self) -> int:
        """The last position: literal steps first, then one for each goal of the fast-forward."""
        return self.literal_steps + len(self.goals)

    @cached_property
    def schedule(self) -> IntArray:
        """The positions that are shown on the way to the end."""
        literal = recorded_steps(FRAMES, self.literal_steps)
        later = self.literal_steps + 1 + np.arange(len(self.goals))
        return np.concatenate([literal, later])

    @property
    def in_span(self) -> bool:
        """Whether coordinates of the span are fewer than those of the space."""
        return self.clusters + self.samples + self.reserve < self.dim

    @property
    def reserve(self) -> int:
        """How many initial weights are drawn."""
        return 2 * self.width + self.clusters * self.fine_width

    @property
    def dtype(self) -> str:
        """The precision."""
        return "float32" if self.samples >= _SINGLE_PRECISION_FROM else "float64"

    @property
    def bytes(self) -> int:
        """The memory that one network and its points take, estimated."""
        n, columns = self.samples, self._columns
        gram = n * n if self._is_dual else 0
        return (n * columns + gram) * np.dtype(self.dtype).itemsize

    @property
    def _columns(self) -> int:
        return self.clusters + self.samples + self.reserve if self.in_span else self.dim

    @property
    def _is_dual(self) -> bool:
        return self.samples < 2 * self._columns

    def _check_costs(self) -> None:
        if self.bytes > _MEMORY:
            raise InputError(
                f"{self.samples:,} points in {self.dim:.4g} dimensions would need "
                f"{self.bytes / 1e6:,.0f} MB for each network, and the playground allows "
                f"{_MEMORY / 1e6:.0f} MB; take fewer samples."
            )
        neurons = max(2 * self.width, self.clusters * self.fine_width)
        steps = self.literal_steps + (_USUAL_LEAPS if self.goals else 0)
        thin = self.samples * min(self.samples, 2 * self._columns)
        seconds = neurons * thin * steps / _MULTIPLICATIONS
        if seconds > _SECONDS:
            raise InputError(
                f"training would take about {seconds:,.0f} seconds, and the playground allows "
                f"{_SECONDS:.0f}; take fewer samples, steps, clusters or neurons."
            )


KNOBS: dict[str, Knob] = {
    f.name: f.metadata["knob"] for f in fields(Settings) if "knob" in f.metadata
}
"""The sliders by name, in the order of the page."""

_WHOLE = frozenset(
    name for name in KNOBS if Settings.__annotations__[name] == "int"
)  # annotations are text here


def _within(name: str, value: Any, knob: Knob) -> float | int:
    """Return a value in the range of its slider."""
    if isinstance(value, float) and name in _WHOLE and value.is_integer():
        value = int(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not knob.low <= value <= knob.high:
        shown = value if is_number else repr(value)
        raise InputError(f"{name} must be from {knob.low:g} to {knob.high:g}; got {shown}.")
    if name in _WHOLE:
        return checks.count(name, value, minimum=int(knob.low))
    return float(value)


def _parsed(name: str, text: str) -> float | int:
    """Return the number that a text of the address means."""
    try:
        if len(text) > 40:
            raise ValueError
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise InputError(f"{name} must be a number; got {text[:40]!r}.") from None


def _text(value: float | str) -> str:
    """Return a value as the address holds it; whole numbers without a point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).replace("e+", "e")  # in an address, + is a space
