"""Sweeps: many runs of one experiment, on all cores or a cluster, resumed when interrupted."""

from __future__ import annotations

from featavg.lab.sweeps.design import Axis, Design
from featavg.lab.sweeps.engine import sweep
from featavg.lab.sweeps.experiment import SweepExperiment
from featavg.lab.sweeps.store import Store, Tally

__all__ = ["Axis", "Design", "Store", "SweepExperiment", "Tally", "sweep"]
