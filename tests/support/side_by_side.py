"""What processes measure that are started by tests: they have to be able to import it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from featavg.errors import InputError
from featavg.experiments import Experiment
from support.probe import Probe


def measure(parameters: Any, seed: int) -> dict[str, Any]:
    """Return numbers, and the process in which they were drawn."""
    numbers = np.random.default_rng(seed).random(parameters.size)
    return {"numbers": numbers, "mean": numbers.mean(), "process": os.getpid()}


def refuse(parameters: Any, seed: int) -> dict[str, Any]:
    """Refuse seed 1."""
    if seed == 1:
        raise InputError("seed must not be 1.")
    return measure(parameters, seed)


def die(parameters: Any, seed: int) -> dict[str, Any]:
    """End the process without a word at seed 1."""
    if seed == 1:
        os._exit(3)
    return measure(parameters, seed)


def experiment(function: Any) -> Experiment:
    """Return an experiment that measures with a function of this module."""
    return replace(Probe().experiment, measure=function)
