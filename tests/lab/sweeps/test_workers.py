from __future__ import annotations

from dataclasses import replace

import numpy as np

from featavg.lab.sweeps import workers
from support.sweep_faults import tiny


def _nan(parameters, seed):
    return {"index": np.nan, "fine": 1.0, "learning_rate": 2.0}


def test_what_is_not_a_number_counts_as_failed_and_names_do_not_clash():
    design = tiny(seeds=1)
    design = replace(design, experiment=replace(design.experiment, measure=_nan))
    (row, _) = workers.run_batch(design, design.jobs(), "source")
    assert (row["status"], row["error"]) == ("failed", "index is not a number")
    assert (row["learning_rate"], row["measured_learning_rate"]) == (1e-3, 2.0)
