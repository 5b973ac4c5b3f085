"""Experiments beyond the paper: what averages the features, and what decouples them."""

from __future__ import annotations

from types import ModuleType

from featavg.experiments.beyond import (
    adversarial,
    granularity,
    granularity_real,
    imbalance,
    label_supply,
    learners,
    orientation,
    published_curve,
    radius_training,
    readouts,
)

MODULES: tuple[ModuleType, ...] = (
    granularity,
    granularity_real,
    readouts,
    learners,
    orientation,
    radius_training,
    imbalance,
    label_supply,
    adversarial,
    published_curve,
)
"""The modules of the experiments, in the order of the page "What we found"."""
