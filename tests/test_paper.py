from __future__ import annotations

import numpy as np
import pytest

from featavg import InputError
from featavg.paper import figure3_curve
from featavg.robustness import half_radius


def test_the_papers_curves():
    """Figure 3 (left): where the paper's own curves cross one half."""
    assert half_radius(*figure3_curve("synthetic", 2)) == pytest.approx(15.4, abs=0.05)
    assert half_radius(*figure3_curve("synthetic", 10)) == pytest.approx(37.4, abs=0.05)
    for panel in ("synthetic", "mnist", "cifar10"):
        for classes in (2, 10):
            radii, accuracy = figure3_curve(panel, classes)
            assert (np.diff(radii) > 0).all()
            assert (np.diff(accuracy) <= 0).all()
    with pytest.raises(InputError, match="panel must be"):
        figure3_curve("svhn", 2)
