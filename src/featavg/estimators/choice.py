"""Choosing the number of subclasses: the stable ones, or more if that is more robust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from featavg.estimators.fitting import Plan, Split
from featavg.estimators.frontier import Frontier
from featavg.estimators.subclasses import Subclasses, SubclassSearch

# A larger number of subclasses must raise the radius by more than this factor.
_GAIN = 1.05
# The minimum number of points of a subclass, on average.
_FEWEST_POINTS = 10
# Short training on few points is enough to compare numbers of subclasses.
_STEPS = 58
_POINTS = 2000


def choose_subclasses(
    search: SubclassSearch,
    split: Split,
    measure: Callable[[Subclasses, Split, Plan], Frontier],
    plan: Plan,
    *,
    wanted: Any,
    largest: int,
) -> Subclasses:
    """Choose the number of subclasses of each class unless it is given, and find them.

    The first candidate are the numbers found by `cluster`. Real classes often have no clear
    clusters, or a few very clear ones that have parts themselves (animals and vehicles), and a
    network of more subclasses is more robust. So larger numbers, the same for all classes (half of
    `largest` and all of it), are candidates too where no class has fewer distinct points: a network
    is trained briefly for each, and the smallest is chosen whose median radius on the held-out
    points, where the accuracy is within `robustness` standard errors of the best of all, is within
    5 % of the largest. Where clusters are all there is, as in the paper's law, more subclasses gain
    nothing, and the first candidate is chosen.
    """
    first = search.find(wanted, largest=largest)
    is_given = not (isinstance(wanted, str) and wanted == "auto")
    if is_given or not split.held_out:
        return first
    average = len(first.class_of) / len(first.counts)
    most = min(search.smallest_class // _FEWEST_POINTS, search.most)
    tried = [m for m in sorted({largest // 2, largest}) if average < m <= most]
    candidates = [first, *(search.find(m) for m in tried)]
    if len(candidates) == 1:
        return first
    short = replace(plan, max_iter=min(plan.max_iter, _STEPS))
    frontiers = [measure(found, _fewer(split, found, search.rng), short) for found in candidates]
    chosen = candidates[smallest_robust(frontiers, plan.robustness)]
    return replace(chosen, strength=first.strength)


def smallest_robust(frontiers: Sequence[Frontier], robustness: float) -> int:
    """Return the index of the first frontier that is nearly as robust as the best one.

    Examples
    --------
    >>> def frontier(accuracy, radius):
    ...     return Frontier(np.array([10]), np.array([accuracy]), np.array([radius]), 100, 100)
    >>> smallest_robust([frontier(0.90, 4.0), frontier(0.90, 5.0), frontier(0.90, 5.1)], 1.0)
    1
    >>> smallest_robust([frontier(0.90, 4.0), frontier(0.80, 9.0)], 1.0)
    0
    """
    best = max(frontiers, key=lambda frontier: float(frontier.accuracy.max()))
    lowest = best.lowest_accuracy(robustness)
    radii = [
        max((r for a, r in zip(f.accuracy, f.radius, strict=True) if a >= lowest), default=-np.inf)
        for f in frontiers
    ]
    return int(np.flatnonzero(np.array(radii) >= max(radii) / _GAIN)[0])


def _fewer(split: Split, found: Subclasses, rng: np.random.Generator) -> Split:
    """Return a split with at most a few thousand training points, some of each subclass."""
    if len(split.train) <= _POINTS:
        return split
    some = rng.permutation(split.train)[:_POINTS]
    _, one_of_each = np.unique(found.labels[split.train], return_index=True)
    return Split(np.union1d(some, split.train[one_of_each]), split.check, split.held_out)
