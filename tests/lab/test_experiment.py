from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments import (
    Expectation,
    Table,
    figure3,
    run,
)
from support.probe import Probe


def test_equal_parameters_are_one_run():
    keys = {
        figure3.EXPERIMENT.key(p)
        for p in (
            figure3.Parameters(),
            figure3.Parameters(signal=1, clusters=np.int64(10)),
            figure3.Parameters(learning_rate=np.float64(0.001)),
        )
    }
    assert len(keys) == 1


def test_an_expectation_holds_only_if_every_seed_is_in_range():
    expectation = Expectation("a number", "x", low=0, high=1)
    assert expectation.judge({"x": np.array([0.0, 0.5, 1.0])}).holds
    assert not expectation.judge({"x": np.array([0.5, 1.01])}).holds
    assert not expectation.judge({"x": np.array([0.5, np.nan])}).holds
    outcome = expectation.judge({"x": np.array([0.2, 0.4])})
    assert outcome.mean == pytest.approx(0.3)
    assert outcome.std == pytest.approx(np.sqrt(0.02))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../../escaped", "a/b", "a\\b", "a b", "a\n", None]
)
def test_an_id_that_is_no_name_of_a_folder_is_refused(name):
    with pytest.raises(InputError, match="the id of an experiment must be of letters, digits, "):
        replace(Probe().experiment, id=name)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (None, r"measure must return a dict with a number .* for each quantity; got None\.$"),
        ({}, r"measure must return a dict .*; got \{\}\.$"),
        (0.5, r"measure must return a dict .*; got 0\.5\.$"),
        (
            {"mean": "high"},
            r"measurement 'mean' must be a number, or an array .*; got 'high'",
        ),
        ({"mean": None}, r"measurement 'mean' must be .*; got None\.$"),
        ({"mean": [[1.0, 2.0], [3.0]]}, r"measurement 'mean' must be .*; got \[\[1\.0, 2\.0\], \["),
        (
            {"maen": 0.5},
            r"expectation must be one of 'maen'; got 'mean' \(did you mean 'maen'\?\)\.$",
        ),
    ],
)
def test_a_measurement_that_cannot_be_used_is_refused_after_one_seed(measured, message, tmp_path):
    seeds = []

    def measure(parameters, seed):
        seeds.append(seed)
        return measured

    with pytest.raises(InputError, match=message):
        run(replace(Probe().experiment, measure=measure), out=tmp_path)
    assert seeds == [0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("function", "returned", "message"),
    [
        ("expects", None, r"expects must return a list of Expectation; got None\.$"),
        ("expects", ["high"], r"expects must return a list of Expectation; got \['high'\]\.$"),
        ("table", None, r"table must return a featavg\.experiments\.Table; got None\.$"),
        ("views", None, r"views must return a list of HeatMaps \| Curves \| Dots \| Claims; got"),
        ("views", [1], r"views must return a list of .*; got \[1\]\.$"),
    ],
)
def test_what_a_function_of_an_experiment_must_return_is_said(
    function, returned, message, tmp_path
):
    probe = Probe()
    wrong = replace(probe.experiment, **{function: lambda *_: returned})
    with pytest.raises(InputError, match=message):
        run(wrong, out=tmp_path)
    assert bool(probe.measured) == (function != "expects")  # before any work, if that can be


def test_rows_that_do_not_fit_the_columns_of_a_table_are_refused():
    with pytest.raises(InputError, match=r"each column \('seed', 'mean'\); got \(1, 2, 3\)\.$"):
        Table(("seed", "mean"), [(0, 0.5), (1, 2, 3)])
