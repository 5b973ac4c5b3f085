from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.experiments import averaging
from support import sweep_faults as faults


def test_the_setting_is_that_of_the_figures():
    parameters = averaging.Parameters(**faults.FIXED)
    measured = averaging.measure(parameters, 3)
    train, test = parameters.draw(3)
    run = parameters.train_coarse(train, 3)
    assert measured["index"] == fa.averaging_index(run.net, run.sample)
    radii = fa.exact_radii(run.net, test.x, test.y)
    # the search is exact from every start, up to rounding
    assert measured["radius"] == pytest.approx(np.median(radii.upper), rel=1e-12)
