from __future__ import annotations

import numpy as np
import pytest

from featavg.estimators import AveragingClassifier, Frontier
from featavg.estimators.radius_fitting import is_at_its_end
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


@pytest.mark.parametrize(
    ("accuracy", "radius", "ends"),
    [
        ([1.0], [5.0], False),  # the next radius is not known
        ([1.0, 1.0], [5.0, 5.2], False),
        ([1.0, 1.0], [5.0, 5.01], True),
        ([0.9, 0.9], [5.0, 4.0], False),
        ([0.9, 0.9, 0.9, 0.9], [5.0, 4.0, 3.0, 2.0], True),
        ([0.9, 0.9, 0.9, 0.95], [5.0, 4.0, 3.0, 2.0], False),
        ([0.8, 0.9, 0.9, 0.9, 0.9], [5.0, 4.0, 3.0, 2.0, 1.0], True),
    ],
)
def test_a_path_ends_where_smaller_margins_add_nothing(accuracy, radius, ends):
    frontier = Frontier(
        np.arange(len(accuracy)),
        np.array(accuracy),
        np.array(radius),
        points=400,
        radius_points=400,
    )
    assert is_at_its_end(frontier) is ends
