"""The command that runs a saved run again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from featavg.apps.report.saved import QUICK, SavedRun
from featavg.lab.experiment import Experiment
from featavg.reading import Scalar


def command(run: SavedRun) -> str | None:
    """Return the command line that repeats a run, or None if no flags of this version do.

    Only parameters that differ from the defaults are named. A parameter that this version does
    not have, or of another type, has no flag; neither has a text with control characters.
    """
    experiment = run.experiment
    if experiment is None:
        return None
    quick = run.setting == QUICK
    flags = ["--quick"] if quick else _flags(experiment, run.summary.parameters)
    if flags is None:
        return None
    if len(run.seeds) != experiment.usual_seeds(quick):
        flags += ["--seeds", str(len(run.seeds))]
    return shlex.join(["featavg", "run", experiment.id, *flags])


def _flags(experiment: Experiment, parameters: Mapping[str, Scalar]) -> list[str] | None:
    usual = asdict(experiment.parameters)
    if set(parameters) != set(usual):
        return None
    flags = []
    for name, value in parameters.items():
        default = usual[name]
        if value == default and type(value) is type(default):
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool) and isinstance(default, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif _has_a_flag(value, default):
            flags.append(f"--{flag}={value}")  # with =, so that -1 is no flag
        else:
            return None
    return flags


def _has_a_flag(value: Any, default: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, str):
        return value.isprintable() and isinstance(default, str | None)
    return not isinstance(default, str)
