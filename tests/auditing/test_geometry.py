from __future__ import annotations

import numpy as np
import pytest

from featavg.auditing.geometry import Geometry


def test_geometry_by_hand():
    x = np.array([[2.0, 0, 0], [4, 0, 0], [0, 1, 0], [0, 0, 3], [0, 0, 5]])
    geometry = Geometry.of(x, np.array([0, 0, 1, 2, 2]), np.array([0, 0, 1]))
    np.testing.assert_allclose(geometry.means, [[3, 0, 0], [0, 1, 0], [0, 0, 4]])
    np.testing.assert_allclose(geometry.cosines, np.eye(3))
    assert geometry.orthogonal_cosine == -0.5
    assert geometry.cosine_deviation == pytest.approx(0.5)  # |0 + 1/2|: not even centred
    assert geometry.decoupled_index == 0
    assert geometry.imbalance == 2
    weights = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    # of class 0 one neuron averages and one does not; class 1 has one subclass and no say
    assert geometry.averaging_index(weights, np.array([0, 0, 1])) == pytest.approx(0.5)
