"""Experiments beyond the paper: what averages the features, and what decouples them."""

from __future__ import annotations

from types import ModuleType

from featavg.experiments.beyond import granularity, learners, orientation, readouts

MODULES: tuple[ModuleType, ...] = (granularity, readouts, learners, orientation)
"""The modules of the experiments, in the order of the page "What we found"."""
