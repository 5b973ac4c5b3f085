"""Draw a ledger of claims: the statement of each in words, and its slack as a bar."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from featavg.drawing.parts import as_it_is, with_subscripts
from featavg.drawing.style import COARSE, FINE, PAPER, QUIET
from featavg.drawing.views import HOLDS, NOT_STATED, VIOLATED, ClaimRow, Claims

COLUMNS = 2
"""How many panels the claims are spread over."""

_DECADES = 6.0  # how far a bar reaches to each side
_WIDTH, _ROW = 9.4, 0.205  # of a panel and of a row, in inches
_COLOURS = {HOLDS: FINE, VIOLATED: COARSE, NOT_STATED: QUIET}


def size(view: Claims) -> tuple[float, float]:
    """Return the width and height of a panel in inches."""
    return _WIDTH, _ROW * max(len(rows) for rows in spread(view.claims)) + 1.0


def spread(claims: Sequence[ClaimRow], panels: int = COLUMNS) -> list[list[ClaimRow | str]]:
    """Return the rows of each panel: claims, and the name of a section before its first ones."""
    rows: list[ClaimRow | str] = []
    for claim in claims:
        if not rows or not isinstance(rows[-1], ClaimRow) or rows[-1].section != claim.section:
            rows.append(claim.section)
        rows.append(claim)
    most = -(-len(rows) // panels)
    return [rows[i * most : (i + 1) * most] for i in range(panels)]


def draw_claims(axes: Axes, rows: Sequence[ClaimRow | str], *, height: int) -> None:
    """Draw the slack of claims on a logarithmic axis: a claim holds to the right of 1."""
    for place, row in enumerate(rows):
        if isinstance(row, str):
            continue
        unbounded = np.inf if row.verdict == HOLDS else 1.0
        slack = np.clip(unbounded if row.slack is None else row.slack, 10**-_DECADES, 10**_DECADES)
        colour = _COLOURS[row.verdict]
        axes.barh(place, slack - 1, left=1, color=colour, height=0.7)
        axes.plot(slack, place, "|", color=colour, markersize=6)
    texts = [as_it_is(r) if isinstance(r, str) else with_subscripts(in_words(r)) for r in rows]
    axes.set_yticks(range(len(rows)), texts, fontsize=8.5)
    for tick, row in zip(axes.get_yticklabels(), rows, strict=True):
        if isinstance(row, str):
            tick.set_fontweight("bold")
        else:
            tick.set_color(_COLOURS[row.verdict])
    axes.tick_params(axis="y", length=0)
    axes.set(xscale="log", xlim=(10 ** -(_DECADES + 0.3), 10 ** (_DECADES + 0.3)))
    axes.set_ylim(height - 0.4, -0.6)
    axes.axvline(1, color=PAPER, linewidth=0.8)
    axes.set_xlabel(
        f"violated  ←  bound over measured, cut at $10^{{\\pm {_DECADES:.0f}}}$  →  holds"
    )


def in_words(row: ClaimRow) -> str:
    """Return the name and the statement of a claim.

    Examples
    --------
    >>> about = ("Appendix B", "the ε below is small.", "k^-2.5", "", HOLDS, 1.0, 2.0, 2.0, 0, 1)
    >>> in_words(ClaimRow("lemma-b.7.epsilon", *about))
    'Lemma B.7 (epsilon): the ε below is small'
    """
    kind, _, number = row.id.partition("-")
    parts = re.fullmatch(r"((?:[a-z]\.)?[\d.]*\d)\.?(.*)", number)
    if parts is None:
        return f"{row.id}: {row.statement.rstrip('.')}"
    which, rest = parts.groups()
    aside = f" ({rest.replace('-', ' ')})" if rest else ""
    name = "Frei et al." if kind == "frei" else kind.capitalize()
    return f"{name} {which.upper()}{aside}: {row.statement.rstrip('.')}"
