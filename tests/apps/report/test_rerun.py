from __future__ import annotations

import json
import shlex
from dataclasses import fields, replace

import pytest

from featavg import InputError
from featavg.apps.cli.experiments import chosen_parameters, parse_flags
from featavg.apps.cli.main import build_parser
from featavg.apps.report.saved import find_runs
from featavg.experiments import EXPERIMENTS
from support.report_runs import run_folder


def changed(value):
    """Another value of the same kind that every experiment accepts, or the same."""
    return value + 1 if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_command_repeats_the_run(name, tmp_path):
    experiment = EXPERIMENTS[name]
    own = experiment.parameters
    for field in fields(own):
        try:
            own = replace(own, **{field.name: changed(getattr(own, field.name))})
        except InputError:
            continue
    for parameters in (experiment.parameters, experiment.quick, own):
        described = json.loads(json.dumps(experiment.describe(parameters)))
        root = tmp_path / experiment.key(parameters)
        folder = run_folder(root, name, parameters=described["parameters"])
        assert folder.name == experiment.key(parameters)
        ((run,), _) = find_runs(root)
        found, options = parse_flags(build_parser().parse_args(shlex.split(run.command)[1:]))
        assert found is experiment
        assert experiment.key(chosen_parameters(found, options)) == experiment.key(parameters)
        assert (options.seeds or experiment.usual_seeds(options.quick)) == 2


@pytest.mark.parametrize("value", ["a\nb", "\x1b[2J", None, True, [1]])
def test_no_command_is_made_of_values_that_no_flag_takes(value, tmp_path):
    experiment = EXPERIMENTS["figure5"]
    parameters = experiment.describe(experiment.parameters)["parameters"]
    run_folder(tmp_path, "figure5", parameters=parameters | {"values": value})
    runs, unreadable = find_runs(tmp_path)
    assert [run.command for run in runs] == ([] if unreadable else [None])
