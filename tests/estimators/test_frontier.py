from __future__ import annotations

import numpy as np
import pytest

from featavg.estimators import AveragingClassifier
from support.classifiers import QUIET


@pytest.mark.slow
@QUIET
def test_robustness_moves_along_the_frontier(digits):
    X, digit, *_ = digits
    kinds = [
        AveragingClassifier(random_state=0, robustness=r).fit(X, digit >= 5)
        for r in (0.0, 1.0, 5.0)
    ]
    chosen = [model.frontier_.chosen for model in kinds]
    frontier = kinds[0].frontier_
    assert (frontier.values == kinds[1].frontier_.values).all()
    assert frontier.accuracy[chosen[0]] == frontier.accuracy.max()
    radii = frontier.radius[chosen]
    assert (np.diff(radii) >= 0).all()
    assert radii[2] > radii[0]
    assert kinds[2].n_iter_ == frontier.values[chosen[2]]
