"""Find the runs that a page quotes, and the numbers in them."""

from __future__ import annotations

import ast
import csv
import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from featavg.lab import registry

_ADDRESS = re.compile(
    r"^(?P<id>[\w-]+)(?:\[(?P<set>[^]]*)\])?(?::(?P<what>\S+?))?(?: (?P<as>\S+))?$"
)


@dataclass(frozen=True)
class Address:
    """A number that a page quotes, such as ``ledger[preset=theorem]:violated .0f``.

    Attributes
    ----------
    experiment : str
        The id of an experiment.
    changed : dict
        The parameters that differ from its defaults, in brackets, with commas between them.
    quantity : str
        A number of ``scalars.csv``, or ``column?name=value&name=value`` for the mean of a column
        of ``results.csv`` over the rows in which these columns have these values (+ is a space).
    form : str
        How to write it, as in ``format(number, form)``.
    """

    experiment: str
    changed: Mapping[str, str]
    quantity: str = ""
    form: str = ".3g"

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address.

        Examples
        --------
        >>> Address.of("ledger[preset=theorem]:violated .0f")
        Address(experiment='ledger', changed={'preset': 'theorem'}, quantity='violated', form='.0f')
        """
        found = _ADDRESS.match(text.strip())
        if found is None or found["id"] not in registry.experiments():
            raise ValueError(f"{text!r} must be EXPERIMENT[name=value]:quantity format")
        pairs = [part.split("=", 1) for part in (found["set"] or "").split(",") if part]
        changed = {name.strip(): value.strip() for name, value in pairs}
        return cls(found["id"], changed, found["what"] or "", found["as"] or ".3g")

    @property
    def command(self) -> str:
        """The command that makes the run."""
        flags = [f" --{name.replace('_', '-')} {value}" for name, value in self.changed.items()]
        return f"featavg run {self.experiment}{''.join(flags)}"

    def find(self, folder: Path, shipped: Path | None = None) -> FoundRun | None:
        """Return the run at the usual parameters, or else at the quick ones, or else nothing.

        One that was made here counts before one whose numbers are shipped.
        """
        experiment = registry.find(self.experiment)
        for start, quick in ((experiment.parameters, False), (experiment.quick, True)):
            changed = {name: _like(getattr(start, name), t) for name, t in self.changed.items()}
            name = f"{experiment.id}/{experiment.key(replace(start, **changed))}"
            for place in (folder, shipped):
                if place is not None and (place / name / "summary.json").is_file():
                    return FoundRun(place / name, quick, is_shipped=place is shipped)
        return None


@dataclass(frozen=True)
class FoundRun:
    """A finished run: its folder, whether it is a quick one, and whether only numbers are there."""

    path: Path
    quick: bool
    is_shipped: bool = False

    @property
    def place(self) -> str:
        """Where it is, and for one that is shipped what made it."""
        name = f"{self.path.parent.name}/{self.path.name}"
        if not self.is_shipped:
            return f"runs/{name}"
        return f"shipped {name}, made with featavg {self.provenance['versions']['featavg']}"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What ``summary.json`` holds."""
        content: dict[str, Any] = json.loads(self._text("summary.json"))
        return content

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions and time."""
        content: dict[str, Any] = json.loads(self._text("provenance.json"))
        return content

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a table."""
        with (self.path / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def expectation(self, quantity: str) -> dict[str, Any]:
        """Return the expectation of a quantity."""
        for entry in self.summary["expectations"]:
            if entry["quantity"] == quantity:
                found: dict[str, Any] = entry
                return found
        raise KeyError(f"{self.path.parent.name} expects nothing of {quantity!r}")

    def values(self, quantity: str) -> list[float]:
        """Return a quantity for each seed."""
        column, _, query = quantity.partition("?")
        if not query:
            found = [float(row[column]) for row in self.rows("scalars.csv")]
        else:
            wanted = dict(part.split("=", 1) for part in query.replace("+", " ").split("&"))
            rows = [
                r for r in self.rows("results.csv") if all(_same(r[k], wanted[k]) for k in wanted)
            ]
            seeds: dict[str, list[float]] = {}
            for row in rows:
                seeds.setdefault(row.get("seed", "0"), []).append(float(row[column]))
            found = [statistics.fmean(values) for values in seeds.values()]
        if not found:
            raise KeyError(f"{self.path.parent.name} has no {quantity!r}")
        return found

    def _text(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")


def written(values: list[float], form: str) -> str:
    """Return the mean, and the standard deviation over seeds where there are several.

    The standard deviation has as many decimals as the mean.

    Examples
    --------
    >>> written([17.25, 17.75], ".1f"), written([0.5], ".0%"), written([2.0, 2.0], ".0f")
    ('17.5 ± 0.4', '50 %', '2')
    >>> written([0.4428, 0.4432], ".3g"), written([38.0, 39.0], ".3g")
    ('0.443 ± 0.000', '38.5 ± 0.7')
    """
    text = _number(statistics.fmean(values), form)
    if len(set(values)) < 2:
        return text
    if form.endswith("g") and "·" not in text:
        form = f".{len(text.partition('.')[2])}f"
    spread = _number(statistics.stdev(values), form.replace("+", ""))
    return f"{text.removesuffix(' %')} ± {spread}"


def _number(value: float, form: str) -> str:
    text = format(value, form).replace("-", "−").replace("%", " %")
    found = re.fullmatch(r"(.*)e([+−]?)0*(\d+)", text)
    if found is None:
        return text
    digits = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
    power = f"10{(found[2].replace('+', '') + found[3]).translate(digits)}"
    return power if found[1] == "1" else f"{found[1]}·{power}"


def _like(default: Any, text: str) -> Any:
    """Return the text as the type of the default: a string, or else a Python literal."""
    return text if isinstance(default, str) else ast.literal_eval(text)


def _same(have: str, want: str) -> bool:
    try:
        return abs(float(have) - float(want)) < 1e-9
    except ValueError:
        return have == want
