"""What a search leaves behind so that its bound can be checked without searching."""

from __future__ import annotations

from dataclasses import dataclass, field

from featavg.arrays import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Weights:
    r"""Multipliers of what holds at every win in a node.

    With :math:`\tau_k \ge 0` for the rivals, :math:`0 \le h_r \le \sum_k \tau_k |g_{kr}|` for the
    hindering neurons and :math:`\alpha_l \ge 0` for the challengers that are decided, a sum of
    inequalities that all hold there.
    """

    rivals: FloatArray
    hindering: FloatArray
    decided: FloatArray


@dataclass(frozen=True, eq=False)
class PatternProof:
    """Multipliers for `featavg.robustness.exact.shor.proves`, of the neurons that are free.

    The others are on or off for certain within a ball of this radius.
    """

    weights: Weights
    free: BoolArray
    radius: float
    distance: float
    multipliers: FloatArray


@dataclass(frozen=True, eq=False)
class Round:
    """Multipliers of one relaxation, whose chords are over the reach of a ball of this radius."""

    weights: Weights
    radius: float


@dataclass(eq=False)
class ProofNode:
    """A node of the search: a challenger that its parent had left undecided is on or off.

    `parent` is -1 for the first node of a contest; `rounds` are the multipliers of its
    relaxations, each over the cap that the one before proves. `drawn` are those that prove that a
    fully decided node can at most be drawn.
    """

    contest: int
    parent: int
    split: int
    side: int
    rounds: list[Round] = field(default_factory=list)
    patterns: PatternProof | None = None
    drawn: Weights | None = None


@dataclass(frozen=True, eq=False)
class Proof:
    """All nodes of a search, in the unit that it used."""

    unit: float
    nodes: tuple[ProofNode, ...]

    def __len__(self) -> int:
        return len(self.nodes)
