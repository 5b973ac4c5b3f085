"""What a search leaves behind so that its bound can be checked without searching."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from featavg.arrays import BoolArray, FloatArray, IntArray


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
    """Multipliers for `featavg.robustness.exact.shor.proves`, of the neurons that are free."""

    weights: Weights
    free: BoolArray
    distance: float
    multipliers: FloatArray


@dataclass(eq=False)
class ProofNode:
    """A node of the search: a challenger that its parent had left undecided is on or off.

    `parent` is -1 for the first node of a contest; `rounds` are the multipliers of its
    relaxations, each over the cap that the one before proves.
    """

    contest: int
    parent: int
    split: int
    side: int
    rounds: list[Weights] = field(default_factory=list)
    patterns: PatternProof | None = None
    drawn: bool = False


@dataclass(frozen=True, eq=False)
class Proof:
    """All nodes of a search, in the unit that it used."""

    unit: float
    nodes: tuple[ProofNode, ...]

    def __len__(self) -> int:
        return len(self.nodes)


def signs_of(nodes: tuple[ProofNode, ...], index: int, challengers: int) -> IntArray:
    """Return which challengers are on, off or undecided in a node."""
    signs = np.zeros(challengers, dtype=np.int8)
    while nodes[index].parent >= 0:
        signs[nodes[index].split] = nodes[index].side
        index = nodes[index].parent
    return signs
