"""Label groups: which clusters of a side share a label."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from featavg import checks
from featavg.arrays import IntArray
from featavg.errors import InputError

_FORM = re.compile(r"\d+(,\d+)*\|\d+(,\d+)*")


@dataclass(frozen=True)
class Grouping:
    r"""How many clusters share each label: labels between the two sides and the single clusters.

    Paper: none, an extension. The paper's two cases are the ends: one group for each side (its
    coarse labels), and one for each cluster (its fine labels).

    The clusters of a side are put into groups in their order, so ``1,4|2,3`` says that the first
    positive cluster has a label of its own and the other four share one.

    Parameters
    ----------
    positive, negative : tuple of int
        The sizes of the groups of each side.

    Examples
    --------
    >>> grouping = Grouping.parse("1,4|2,3")
    >>> grouping
    Grouping('1,4|2,3')
    >>> grouping.clusters, grouping.signs
    (10, array([ 1,  1, -1, -1]))
    >>> grouping.opposing(0)                    # the groups that a point of the first may end in
    array([2, 3])
    """

    positive: tuple[int, ...]
    negative: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("positive", "negative"):
            sizes = tuple(getattr(self, name))
            if not sizes:
                raise InputError(f"{name} must hold the size of at least one group; got none.")
            checked = tuple(checks.count(f"each size of {name}", size) for size in sizes)
            object.__setattr__(self, name, checked)

    @classmethod
    def parse(cls, text: Any) -> Grouping:
        """Read sizes of groups such as ``1,4|2,3``, the positive side first."""
        if isinstance(text, Grouping):
            return text
        plain = text.replace(" ", "") if isinstance(text, str) else ""
        if not _FORM.fullmatch(plain) or re.search(r"(?<!\d)0+(?!\d)", plain):
            raise InputError(
                "a grouping must have the sizes of the label groups of both sides, each at least "
                f"1, such as '1,4|2,3'; got {text!r}."
            )
        sides = (tuple(map(int, side.split(","))) for side in plain.split("|"))
        return cls(*sides)

    @classmethod
    def coarse(cls, positive: int, negative: int) -> Grouping:
        """Return one group for each side."""
        return cls((positive,), (negative,))

    @classmethod
    def fine(cls, positive: int, negative: int) -> Grouping:
        """Return one group for each cluster."""
        return cls((1,) * positive, (1,) * negative)

    def __str__(self) -> str:
        return "|".join(",".join(map(str, side)) for side in (self.positive, self.negative))

    def __repr__(self) -> str:
        return f"Grouping('{self}')"

    def __len__(self) -> int:
        return len(self.positive) + len(self.negative)

    @property
    def clusters(self) -> int:
        """The number of clusters in all groups."""
        return sum(self.positive) + sum(self.negative)

    @property
    def sizes(self) -> IntArray:
        """The number of clusters of each group, shape (groups,)."""
        return np.array(self.positive + self.negative)

    @property
    def signs(self) -> IntArray:
        """The side of each group, +1 or -1, shape (groups,)."""
        return np.repeat([1, -1], [len(self.positive), len(self.negative)])

    def opposing(self, group: int) -> IntArray:
        """Return the groups of the other side."""
        return np.flatnonzero(self.signs != self.signs[group])

    def labels(self, signs: IntArray) -> IntArray:
        """Return the group of each cluster, given the side of each; shape (clusters,)."""
        sides = np.flatnonzero(signs == 1), np.flatnonzero(signs == -1)
        wanted = sum(self.positive), sum(self.negative)
        if (len(sides[0]), len(sides[1])) != wanted:
            raise InputError(
                f"a grouping must have groups of all {len(sides[0])} positive and all "
                f"{len(sides[1])} negative clusters; got '{self}', which is for {wanted[0]} and "
                f"{wanted[1]}."
            )
        labels = np.empty(len(signs), dtype=np.int64)
        labels[np.concatenate(sides)] = np.repeat(np.arange(len(self)), self.sizes)
        return labels
