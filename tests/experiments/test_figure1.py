from __future__ import annotations

import numpy as np
import pytest

from featavg.experiments import (
    figure1,
    run,
)


@pytest.mark.slow
def test_figure1_shows_the_boundary_where_the_exact_perturbation_ends(tmp_path):
    results = run(figure1.EXPERIMENT, figure1.EXPERIMENT.quick, seeds=1, out=tmp_path).results
    reach = figure1.EXPERIMENT.quick.reach
    ticks, lengths = np.linspace(-0.35 * reach, reach, 141), np.linspace(0, reach, 141)
    for name in ("coarse", "fine"):
        exact = results[f"{name}_exact"][0]
        radius = np.linalg.norm(exact)
        along = results[f"{name}_along_exact"][0]
        assert (along[lengths < 0.999 * radius] > 0).all()
        assert along[np.flatnonzero(lengths > 1.001 * radius)[0]] < 0
        # inside the circle of the exact radius no pixel of the plane is turned
        distance = np.hypot(*np.meshgrid(ticks, ticks))
        assert (results[f"{name}_plane"][0][distance < 0.999 * radius] > 0).all()
