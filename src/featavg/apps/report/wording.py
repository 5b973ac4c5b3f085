"""How numbers and verdicts are written on the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from featavg.apps.report.saved import Row
from featavg.drawing.views import HOLDS, NOT_STATED, VIOLATED, ClaimRow, Claims

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_WITHOUT_END = 1e308  # more than any number that is read
_DECADES = 6  # how far the bar of a claim reaches to each side


def number(value: float | None) -> str:
    """Return a number for a reader.

    Examples
    --------
    >>> number(0.44341), number(17.43), number(9.97e-13), number(None)
    ('0.443', '17.4', '1·10⁻¹²', '–')
    """
    if value is None:
        return "–"
    if value >= _WITHOUT_END:
        return "∞"
    if value != 0 and not 5e-4 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{float(mantissa):g}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    text = f"{value:,.{_digits(value)}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _digits(value: float) -> int:
    if abs(value) >= 1000:
        return 0
    return 1 if abs(value) >= 10 else 3


def measured(row: Row) -> str:
    """Return mean ± std, or the mean alone where there is one seed."""
    text = number(row.mean)
    if row.mean is None or row.std is None:
        return text
    # a spread far below the mean has its digits, not more
    plain = row.std == 0 or "·" not in text
    std = f"{row.std:,.{_digits(row.mean)}f}" if plain else number(row.std)
    return f"{text} ± {std}"


def duration(seconds: float) -> str:
    """Return a time for a reader.

    Examples
    --------
    >>> duration(0.53), duration(21.2), duration(754), duration(7384)
    ('0.5 s', '21 s', '12 min 34 s', '2 h 3 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def kind(verdict: str) -> str:
    """Return the class of a verdict, which says how it looks."""
    return {HOLDS: "holds", VIOLATED: "violated"}.get(verdict, "reported")


def finding(claim: ClaimRow) -> str:
    """Return the verdict, and in how many seeds where they disagree."""
    if claim.verdict == NOT_STATED:
        return "not stated"
    if 0 < claim.violations < claim.seeds:
        return f"{claim.verdict} in {claim.violations} of {claim.seeds}"
    return claim.verdict


def slack(claim: ClaimRow) -> float | None:
    """Return by which factor there is room; without end where the bound is never near."""
    return _WITHOUT_END if claim.slack is None and claim.verdict == HOLDS else claim.slack


def sortable(value: float | None) -> str:
    """Return a number for a script to sort by, empty where there is none."""
    return "" if value is None else repr(value)


def bar(claim: ClaimRow) -> Markup:
    """Return the slack as a bar from the middle: to the right where there is room."""
    factor = slack(claim)
    if factor is None:
        return Markup("")
    decades = min(max(math.log10(max(factor, 1e-300)), -_DECADES), _DECADES)
    width = max(abs(decades) * 30 / _DECADES, 1.5)
    start = 30.0 if factor >= 1 else 30 - width
    return Markup(
        '<svg class="bar {}" viewBox="0 0 60 10" aria-hidden="true">'
        '<rect x="{}" y="1" width="{}" height="8"/><path d="M30 0V10"/></svg>'
    ).format(kind(claim.verdict), f"{start:.1f}", f"{width:.1f}")


def verdicts(claims: Claims) -> list[tuple[str, str, int]]:
    """Return what can be filtered by: a value, a label and how many there are."""
    counts = Counter(claim.verdict for claim in claims.claims)
    labels = {HOLDS: "holds", VIOLATED: "violated", NOT_STATED: "not stated"}
    found = [(verdict, label, counts[verdict]) for verdict, label in labels.items()]
    return [("", "all", len(claims.claims)), *found]


FILTERS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (number, measured, duration, kind, finding, slack, sortable, bar, verdicts)
}
"""What the templates use."""
