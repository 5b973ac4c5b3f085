from __future__ import annotations

import numpy as np
import pytest

import featavg as fa


@pytest.mark.slow
def test_minimal_norm_attacks_find_the_exact_radius_of_trained_networks(paper):
    test, coarse, fine = paper
    for net in (coarse, fine.with_readout("argmax")):
        exact = fa.exact_radii(net, test.x[:100], test.y[:100])
        found = fa.minimal_norm(net, test.x, test.y)
        np.testing.assert_allclose(found.upper[:100], exact.upper, rtol=1e-3)
