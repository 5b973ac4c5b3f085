"""Expectations: statements about measurements, and how they turn out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from featavg import checks
from featavg.lab.tables import Results


@dataclass(frozen=True)
class Expectation:
    """A statement that must hold in every seed for the experiment to count as reproduced.

    Attributes
    ----------
    statement : str
        What is measured, in words.
    quantity : str
        The name of the measurement, a number for each seed.
    low, high : float
        The range it must lie in.
    paper : str
        What the paper says of it.
    """

    statement: str
    quantity: str
    low: float = -np.inf
    high: float = np.inf
    paper: str = ""

    @property
    def rule(self) -> str:
        """The range, for a table."""
        if np.isinf(self.low) and np.isinf(self.high):
            return "reported"
        if np.isinf(self.low):
            return f"≤ {self.high:.3g}"
        if np.isinf(self.high):
            return f"≥ {self.low:.3g}"
        return f"{self.low:.3g} to {self.high:.3g}"

    def of(self, label: str, name: str) -> Expectation:
        """Return the expectation for the measurements of one network."""
        statement, quantity = f"{label}: {self.statement}", f"{name}_{self.quantity}"
        return replace(self, statement=statement, quantity=quantity)

    def check(self, measured: Mapping[str, Any]) -> None:
        """Refuse to be about something that was not measured."""
        checks.choice("the quantity of an expectation", self.quantity, measured)

    def judge(self, results: Results) -> Outcome:
        """Return how the measurements compare."""
        self.check(results)
        values = np.asarray(results[self.quantity], dtype=np.float64)
        holds = bool(((values >= self.low) & (values <= self.high)).all())
        return Outcome(self, tuple(values.tolist()), holds)


def at_least(statement: str, quantity: str, low: float, paper: str = "") -> Expectation:
    """Expect a quantity of `low` or more."""
    return Expectation(statement, quantity, low=low, paper=paper)


def at_most(statement: str, quantity: str, high: float, paper: str = "") -> Expectation:
    """Expect a quantity of `high` or less."""
    return Expectation(statement, quantity, high=high, paper=paper)


def within(
    share: float, statement: str, quantity: str, value: float, paper: str = ""
) -> Expectation:
    """Expect a quantity that differs from `value` by at most a share of it."""
    return Expectation(statement, quantity, (1 - share) * value, (1 + share) * value, paper)


def reported(statement: str, quantity: str, paper: str = "") -> Expectation:
    """Report a quantity, whatever it is."""
    return Expectation(statement, quantity, paper=paper)


@dataclass(frozen=True)
class Outcome:
    """An expectation and what was measured, one value for each seed."""

    expectation: Expectation
    values: tuple[float, ...]
    holds: bool

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """The standard deviation over seeds; NaN for a single one, or where one is not finite."""
        if len(self.values) < 2 or not np.isfinite(self.values).all():
            return float("nan")
        return float(np.std(self.values, ddof=1))

    def summary(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            "statement": self.expectation.statement,
            "quantity": self.expectation.quantity,
            "paper": self.expectation.paper,
            "rule": self.expectation.rule,
            "mean": self.mean,
            "std": self.std,
            "values": list(self.values),
            "holds": self.holds,
        }
