"""Claims of our own, apart from those of the paper, which `featavg.theory.LEDGER` has."""

from __future__ import annotations

import numpy as np

from featavg.data.grouping import Grouping
from featavg.data.law import Law
from featavg.data.multicluster import MultiCluster
from featavg.robustness import exact_radii
from featavg.theory.claim import Claim, Finding, at_most, not_stated
from featavg.theory.evidence import Evidence
from featavg.theory.granularity import argmax_radii, granularity_radii

SECTION = "Ours: beyond the paper"
_SMALL = 0.03
_MOST_POINTS = 3000


def in_between(law: Law) -> Grouping:
    """Return label groups between the sides and the clusters, where there are enough clusters.

    Examples
    --------
    >>> in_between(MultiCluster(clusters=10, dim=100)), in_between(MultiCluster(3, 100))
    (Grouping('1,4|2,3'), Grouping('2|1'))
    """
    positive, negative = len(law.positive_clusters), len(law.negative_clusters)
    first = (1, positive - 1) if positive > 2 else (positive,)
    second = (negative // 2, negative - negative // 2) if negative > 1 else (1,)
    return Grouping(first, second)


def _granularity(e: Evidence) -> Finding:
    """Return the largest relative error of the law in a label group."""
    run, law = e.grouped, e.train.law
    if run is None or run.sample.grouping is None:
        return not_stated("no network was trained on label groups")
    if not isinstance(law, MultiCluster) or law.cosine != 0:
        return not_stated("centres are not orthogonal")
    grouping = run.sample.grouping
    some = slice(0, _MOST_POINTS)
    labels = run.sample.label_of_cluster[e.test.cluster[some]]
    net = run.net.with_readout("argmax")
    radii = argmax_radii(net, e.test.x[some].astype(np.float64), e.test.y[some])
    medians = np.array([np.median(radii[labels == g]) for g in range(len(grouping))])
    errors = np.abs(medians / granularity_radii(grouping, law) - 1)
    return at_most(errors, _SMALL, f"the labels {grouping}")


def _summed_logits(e: Evidence) -> Finding:
    """Return the largest relative error of the median radius by summed logits, of a side."""
    law = e.train.law
    some = slice(0, e.radius_samples)
    x, y = e.test.x[some], e.test.y[some]
    net = e.fine.run.net.with_readout("logit-sum")
    radii = exact_radii(net, x, y, certificates=False, jobs=1).upper
    errors = []
    for side, opposing in ((1, law.negative_clusters), (-1, law.positive_clusters)):
        if (y == side).any():
            limit = law.signal * np.sqrt(law.dim / (1 + len(opposing)))
            errors.append(abs(float(np.median(radii[y == side])) / limit - 1))
    return at_most(errors, _SMALL)


OURS: dict[str, Claim] = {
    claim.id: claim
    for claim in (
        Claim(
            "ours-granularity",
            SECTION,
            "a label group of q clusters, the largest opposing one having q', has the radius "
            "α√(d/(q + q')); the relative error.",
            "3 %",
            "1 ± o(1), read as within 3 %",
            _granularity,
        ),
        Claim(
            "ours-readout",
            SECTION,
            "read out by summed logits, decoupled features have the radius α√(d/(1 + |J|)), J the "
            "other side; the relative error.",
            "3 %",
            "1 ± o(1), read as within 3 %",
            _summed_logits,
        ),
    )
}
"""Every claim of our own by its id."""
