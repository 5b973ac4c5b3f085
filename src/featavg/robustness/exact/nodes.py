"""The nodes of a search, what it may cost, and what it finds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from featavg.arrays import FloatArray, IntArray
from featavg.robustness.exact.patterns import PatternState
from featavg.robustness.exact.proof import Proof


@dataclass(frozen=True, eq=False)
class Budget:
    """When a search gives up: after so many nodes, or at a moment of the performance counter."""

    nodes: int
    deadline: float = np.inf

    def is_spent(self, visited: int) -> bool:
        """Return whether to stop."""
        return visited >= self.nodes or time.perf_counter() >= self.deadline


@dataclass(frozen=True, eq=False)
class Found:
    """The answer of a search: bounds of the radius, a perturbation of the upper one, a proof."""

    lower: float
    upper: float
    point: FloatArray | None
    proof: Proof | None = None


@dataclass(order=True)
class Node:
    """A part of the search space: challengers that are on (+1), off (-1) or undecided (0).

    `bound` is the best one known; `point` solves the node's own relaxation, and everything in the
    node is beyond a plane: at least `distance` along `normal`. `order` is its place in the log.
    """

    bound: float
    order: int
    contest: int = field(compare=False)
    signs: IntArray = field(compare=False)
    point: FloatArray = field(compare=False)
    normal: FloatArray | None = field(compare=False)
    distance: float = field(compare=False)
    patterns: PatternState | None = field(compare=False, default=None)
    use_patterns: bool = field(compare=False, default=True)
