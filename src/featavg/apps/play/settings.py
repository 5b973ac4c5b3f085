"""The settings of the playground: the synthetic setting of the experiments, with sliders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote

import numpy as np

from featavg import checks
from featavg.apps.play.worlds import CHOICES, WorldSetting
from featavg.arrays import IntArray
from featavg.errors import InputError, did_you_mean
from featavg.lab.parameters import parameter, plain_types
from featavg.training.trajectory import recorded_steps

NETWORKS = ("coarse", "fine")
TEST_POINTS = 100
"""How many fresh points radii are computed for."""

LITERAL_STEPS = 2000
"""Longer trainings are fast-forwarded; shorter ones take every step."""

FRAMES = 60
"""The approximate number of recorded times of a training."""

_MEMORY = 200e6  # bytes for one network, so that many visitors fit into a machine
_SECONDS = 25.0  # of training, estimated
_MULTIPLICATIONS = 3e9  # a second, on one core
_USUAL_LEAPS = 1000  # long steps that a fast-forward takes
_SINGLE_PRECISION_FROM = 4000


@dataclass(frozen=True)
class Knob:
    """A slider: its name on the page and its range."""

    label: str
    symbol: str
    low: float
    high: float
    help: str
    log: bool = False
    extra: bool = False  # among those that are hidden at first
    world: bool = False  # among those that lead beyond the paper


KNOBS = {
    "clusters": Knob("clusters", "k", 2, 30, "How many groups the points come in."),
    "dim": Knob("dimension", "d", 10, 1e12, "Costs nothing: try a trillion.", log=True),
    "samples": Knob("samples", "n", 10, 10_000, "Training points.", log=True),
    "width": Knob("width", "m", 1, 30, "Neurons for each side of the 2-class network."),
    "learning_rate": Knob("learning rate", "η", 1e-24, 10, "Length of a gradient step.", log=True),
    "weight_scale": Knob("initialisation", "σ_w", 1e-15, 1, "Size of initial weights.", log=True),
    "snr": Knob("signal-to-noise", "α/σ", 0.1, 100, "Signal of centres over noise.", log=True),
    "cosine": Knob("cosine of centres", "c", -1, 0.95, "0: they are orthogonal."),
    "positive": Knob("split", "|J₊|", 1, 29, "How many of the clusters are on the positive side."),
    "steps": Knob("training steps", "T", 1, 1e30, "Above 2000 they are fast-forwarded.", log=True),
    "fine_width": Knob("neurons per class", "h", 1, 4, "With fine labels.", extra=True),
    "bias_scale": Knob("initial biases", "σ_b", 1e-15, 1, "As σ_w unless set.", True, extra=True),
    "seed": Knob("seed", "s", 0, 10**6, "Another seed, another draw.", extra=True),
    "fine_share": Knob(
        "share of fine labels",
        "p",
        0,
        1,
        "Of the second network: other points are labelled with their side alone.",
        world=True,
    ),
    "adversarial": Knob(
        "adversarial training",
        "ε",
        0,
        1.2,
        "Radius of the attacks that both networks are trained on, in units of √(d/2); 0: none.",
        world=True,
    ),
}
"""The sliders by the setting they change, in the order of the page."""


@dataclass(frozen=True, kw_only=True)
class Settings(WorldSetting):
    """A synthetic setting within the ranges of the sliders, and the choices that the page adds.

    Paper: the symbols of Sections 3 and 6.1; the defaults are the setting of Figure 2. The same
    settings give the same numbers.

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

    test_samples: int = field(default=TEST_POINTS, init=False)
    signal: float = field(default=1.0, init=False)
    noise: float = field(init=False)
    bias_scale: float = parameter(None, "sigma_b; by default the scale of the weights")
    snr: float = parameter(1.0, "alpha / sigma, the signal-to-noise ratio")
    labels: Literal["both", "coarse", "fine"] = parameter("both", "the networks to train")
    seed: int = parameter(0, "the seed of all random draws", least=0)
    literal: int = parameter(
        None,
        "the steps taken one by one before the fast-forward; by default up to 2000, or none",
        least=0,
    )

    def __post_init__(self) -> None:
        checks.choice("labels", self.labels, ("both", *NETWORKS))
        for name, knob in KNOBS.items():
            value = getattr(self, name)
            if value is not None or name not in ("positive", "bias_scale"):
                self._set(name, _within(name, value, knob))
        for name, value in self._derived.items():
            if getattr(self, name) is None:
                self._set(name, value)
        literal = checks.count("literal", self.literal, minimum=0)
        self._set("literal", min(literal, self.steps, LITERAL_STEPS))
        self._set("noise", self.signal / self.snr)
        super().__post_init__()
        self._check_costs()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def _derived(self) -> dict[str, float]:
        """The settings that follow from the others unless they are given."""
        return {
            "positive": len(checks.partition(None, self.clusters)),
            "bias_scale": self.weight_scale,
            "literal": self.steps if self.steps <= LITERAL_STEPS else 0,
        }

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Settings:
        """Return the settings that the address of a page holds."""
        given: dict[str, Any] = {}
        for name, text in query.items():
            if name not in _NAMES:
                meant = _BY_SYMBOL.get(name)
                hint = f" (did you mean {meant!r}?)" if meant else did_you_mean(name, _NAMES)
                raise InputError(f"the playground has no setting {name[:40]!r}{hint}.")
            given[name] = text if name in _TEXTS else _parsed(name, text)
        return cls(**given)

    def to_query(self) -> str:
        """Return the settings that differ from the paper's, as the address of a page holds them."""
        usual = Settings().values | self._derived
        return "&".join(
            f"{name}={_text(value)}" for name, value in self.values.items() if value != usual[name]
        )

    @property
    def values(self) -> dict[str, Any]:
        """All that can be set on the page."""
        return {name: getattr(self, name) for name in _NAMES}

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks to train."""
        return NETWORKS if self.labels == "both" else (self.labels,)

    @cached_property
    def goals(self) -> tuple[float, ...]:
        """The steps at which the fast-forward is recorded; empty without a fast-forward.

        Evenly spaced in log-time, after the literal steps.
        """
        if self.steps <= self.literal:
            return ()
        spaced = np.geomspace(max(self.literal, 1), float(self.steps), FRAMES)
        return tuple(float(step) for step in spaced if step > self.literal)

    @property
    def end(self) -> int:
        """The last position: literal steps first, then one for each goal of the fast-forward."""
        return self.literal + len(self.goals)

    @cached_property
    def schedule(self) -> IntArray:
        """The positions that are shown on the way to the end."""
        later = self.literal + 1 + np.arange(len(self.goals))
        return np.concatenate([recorded_steps(FRAMES, self.literal), later])

    @property
    def expected_steps(self) -> int:
        """The estimated number of steps, counting a long step of the fast-forward as one."""
        return self.literal + (_USUAL_LEAPS if self.goals else 0)

    @property
    def dtype(self) -> str:
        """The precision of points and weights."""
        return "float32" if self.samples >= _SINGLE_PRECISION_FROM else "float64"

    @property
    def bytes(self) -> int:
        """The estimated memory of one network and its points."""
        return self.memory(self.dtype)

    @property
    def total_bytes(self) -> int:
        """The memory of all networks in the worker processes, as measured there."""
        return round(len(self.networks) * (1.1 * self.bytes + 2e6))

    def _check_costs(self) -> None:
        if self.goals and not self.can_leap:
            raise InputError(
                "only gradient descent on the cross-entropy or the exponential loss can be "
                f"fast-forwarded, and all else takes at most {LITERAL_STEPS} single steps; got "
                f"steps={self.steps:g} with literal={self.literal}."
            )
        if self.bytes > _MEMORY:
            fewer = "dimensions or samples" if self.needs_frame else "samples"
            raise InputError(
                f"{self.samples:,} points in {self.dim:.4g} dimensions would need "
                f"{self.bytes / 1e6:,.0f} MB for each network, and the playground allows "
                f"{_MEMORY / 1e6:.0f} MB; take fewer {fewer}."
            )
        seconds = self.step_cost * self.expected_steps / _MULTIPLICATIONS
        if seconds > _SECONDS:
            raise InputError(
                f"training would take about {seconds:,.0f} seconds, and the playground allows "
                f"{_SECONDS:.0f}; take fewer samples, steps, clusters or neurons."
            )


_TEXTS = ("labels", *CHOICES, "grouping")
_NAMES = (*_TEXTS, *KNOBS, "literal")
_BY_SYMBOL = {knob.symbol: name for name, knob in KNOBS.items()}
_TYPES = plain_types(Settings)
WHOLE = frozenset(name for name in KNOBS if _TYPES[name][0] is int)
"""The sliders of whole numbers."""


def _within(name: str, value: Any, knob: Knob) -> float | int:
    """Return a value in the range of its slider."""
    if isinstance(value, float) and name in WHOLE and value.is_integer():
        value = int(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not knob.low <= value <= knob.high:
        shown = value if is_number else repr(value)
        raise InputError(f"{name} must be from {knob.low:g} to {knob.high:g}; got {shown}.")
    if name in WHOLE:
        whole = checks.count(name, value, minimum=int(knob.low))
        return int(float(whole))  # without the digits that an address does not hold
    return float(value)


def _parsed(name: str, text: str) -> float | int:
    """Return the number in an address."""
    try:
        if len(text) > 40:
            raise ValueError
        return int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise InputError(f"{name} must be a number; got {text[:40]!r}.") from None


def _text(value: float | str) -> str:
    """Return a value as the address holds it: whole numbers without a point, large ones short."""
    if isinstance(value, str):
        return quote(value, safe=",")
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return str(float(value)).replace("e+", "e")  # in an address, + is a space
