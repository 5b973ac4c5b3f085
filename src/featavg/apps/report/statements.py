"""What a report says first: checks and statements of the paper that hold, and disagreements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from featavg.apps.report.saved import Row, SavedRun
from featavg.drawing.views import HOLDS, VIOLATED, ClaimRow, Claims
from featavg.theory import OURS


@dataclass(frozen=True)
class Ledger:
    """What was found of the statements of the paper, in one run."""

    anchor: str
    title: str
    claims: Sequence[ClaimRow]

    @property
    def holding(self) -> int:
        """The number of statements that hold in every seed."""
        return sum(claim.verdict == HOLDS for claim in self.claims)

    @property
    def violated(self) -> list[ClaimRow]:
        """The statements that are violated in some seed."""
        return [claim for claim in self.claims if claim.verdict == VIOLATED]

    @property
    def not_stated(self) -> int:
        """The number of statements that say nothing at this scale."""
        return len(self.claims) - self.holding - len(self.violated)


@dataclass(frozen=True)
class Statements:
    """What all runs together say.

    Attributes
    ----------
    checks, holding : int
        The number of checks, and of those that hold.
    violated, contested : sequence of (str, Row)
        The checks that do not hold, and the disagreements with the paper, with the run of each.
    ledgers : sequence of Ledger
        The statements of the paper, for each run that has looked at them.
    """

    checks: int
    holding: int
    violated: Sequence[tuple[str, Row]]
    contested: Sequence[tuple[str, Row]]
    ledgers: Sequence[Ledger]

    @classmethod
    def of(cls, runs: Sequence[SavedRun]) -> Statements:
        """Return what these runs say."""
        rows = [(run.anchor, row) for run in runs for row in run.summary.expectations]
        checks = [pair for pair in rows if pair[1].verdict != "reported"]
        violated = [pair for pair in checks if pair[1].verdict == "violated"]
        contested = [pair for pair in rows if pair[1].contested]
        ledgers = [ledger for run in runs for ledger in _ledgers(run)]
        return cls(len(checks), len(checks) - len(violated), violated, contested, ledgers)


def _ledgers(run: SavedRun) -> Iterator[Ledger]:
    """Yield the statements of the paper in a run; claims of our own are left out."""
    for view in run.views:
        if isinstance(view, Claims):
            claims = [claim for claim in view.claims if claim.id not in OURS]
            if claims:
                yield Ledger(run.anchor, view.title, claims)
