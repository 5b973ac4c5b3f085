from __future__ import annotations

import numpy as np
import pytest

import featavg as fa


@pytest.mark.slow
def test_auto_is_exact_where_it_can_be_and_certified_where_not(paper):
    test, coarse, fine = paper
    x, y, radii = test.x[:30], test.y[:30], [10, 17.5, 25, 38, 45]
    for net, method in (
        (coarse, "exact"),
        (fine.with_readout("argmax"), "exact"),
        (fine, "bracket"),
    ):
        curve = fa.robust_curve(net, x, y, radii=radii)
        assert curve.method == method
        if method == "exact":
            np.testing.assert_array_equal(curve.accuracy, curve.certified)
    with pytest.raises(fa.InputError, match="'exact' is not to be had for the probability"):
        fa.robust_curve(fine, x, y, radii=radii, method="exact")
