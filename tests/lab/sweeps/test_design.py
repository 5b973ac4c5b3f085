from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments import EXPERIMENTS, averaging
from featavg.files import json_hash
from featavg.lab.sweeps import Axis, Design
from featavg.lab.sweeps import design as design_module
from support import sweep_faults as faults
from support.sweep_faults import small, tiny


def test_a_grid_is_every_combination_and_seed():
    jobs = small().jobs()
    assert len(jobs) == faults.RUNS == small().size
    assert len({job.id for job in jobs}) == faults.RUNS
    assert {job.seed for job in jobs} == {0, 1}
    # runs that share data follow each other: the data changes 4 times, once for each noise and seed
    data = [(job.seed, job.parameters["noise"]) for job in jobs]
    assert sum(a != b for a, b in pairwise(data)) == 3


@pytest.mark.parametrize("draws", [0, 7])
def test_runs_are_known_by_a_hash_of_all_their_parameters(draws):
    design = small(draws=draws, seeds=3)
    jobs = design.jobs()
    start = asdict(design.start)
    for job in jobs:
        about = {"experiment": "averaging", "parameters": start | job.parameters, "seed": job.seed}
        assert job.id == json_hash(about)[:20]
    assert sorted(design.ids()) == sorted(job.id for job in jobs)


def test_the_checks_of_invalid_values_are_bounded(monkeypatch):
    tried = []
    monkeypatch.setattr(design_module, "_MOST_PAIRS", 10)
    monkeypatch.setattr(design_module, "_is_valid", lambda *pair: tried.append(pair))
    small(axes={"positive": range(11, 31), "clusters": range(2, 12)}, fixed={}, draws=1)
    assert len(tried) == 10


def test_random_draws_are_in_range_and_the_same_every_time():
    axes = {"learning_rate": {"from": 1e-5, "to": 1.0, "scale": "log"}, "width": [1, 2]}
    design = small(axes=axes, draws=200, seeds=1)
    rates = np.array([job.parameters["learning_rate"] for job in design.jobs()])
    assert rates.min() >= 1e-5
    assert rates.max() <= 1
    # log-uniform: the median is near the geometric mean of the ends
    assert np.log10(np.median(rates)) == pytest.approx(-2.5, abs=0.5)
    assert [job.id for job in design.jobs()] == [job.id for job in design.jobs()]


def _values(name, **settings):
    return [job.parameters[name] for job in small(**settings).jobs() if job.seed == 0]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"from": 1, "to": 5, "count": 5}, [1, 2, 3, 4, 5]),
        ({"from": 1, "to": 3, "count": 10}, [1, 2, 3]),
        ({"from": 1, "to": 8, "count": 4, "scale": "log"}, [1, 2, 4, 8]),
        ({"from": 1, "to": 10, "count": 5, "scale": "log"}, [1, 2, 3, 6, 10]),
        ([5.0], [5]),
    ],
)
def test_ranges_of_whole_numbers_have_each_once(given, values):
    found = _values("width", axes={"width": given})
    assert found == values
    assert {type(value) for value in found} == {int}


def test_values_have_the_type_of_their_parameter():
    assert {type(value) for value in _values("noise", axes={"noise": [1, 2.5]})} == {float}
    assert small(fixed={"dim": 60.0, "signal": 2}).fixed == {"dim": 60, "signal": 2.0}
    experiment = EXPERIMENTS["figure5"]
    (job,) = Design.of(experiment, axes={"noise": [1]}, fixed={"values": 200}).jobs()
    assert job.parameters["values"] == "200"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_whole_numbers_are_drawn_with_both_ends(scale):
    axes = {"width": {"from": 1, "to": 4, "scale": scale}}
    found = _values("width", axes=axes, draws=100)
    assert sorted(found) == [1, 2, 3, 4]  # one that is drawn twice is run once
    assert {type(value) for value in found} == {int}


def test_a_value_may_need_one_of_another_axis():
    # 12 positive clusters need more than the usual 10
    design = Design.of(averaging.EXPERIMENT, axes={"positive": [12], "clusters": [4, 20, 8]})
    assert len(design.jobs()) == 3


def test_an_axis_can_set_several_parameters():
    design = tiny().experiment
    both = Design.of(design, axes={"weight_scale+bias_scale": [1e-3, 1e-2]})
    assert [job.parameters for job in both.jobs()] == [
        {"weight_scale": 1e-3, "bias_scale": 1e-3},
        {"weight_scale": 1e-2, "bias_scale": 1e-2},
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {"no_such": [1]}}, "a parameter must be one of"),
        ({"axes": {"width": [1, 1]}}, "different values"),
        ({"axes": {"width": []}}, "one at least"),
        ({"axes": {"width": {"from": 1}}}, "from, to"),
        ({"axes": {"noise": {"from": 0, "to": 1, "count": 3, "scale": "log"}}}, "above 0"),
        ({"axes": {"noise": {"from": 1, "to": 2}}}, "must have a count"),
        ({"axes": {"dim": [1]}}, "set once"),
        ({"seeds": 0}, "seeds must be"),
        ({"fixed": {"dim": -1}}, "dim must be"),
        ({"fixed": {"signal": "x"}}, "signal must be a finite number; got 'x'"),
        ({"fixed": {"signal": 10**400}}, "signal must be a finite number"),
        ({"fixed": [1]}, "fixed must be a table"),
        ({"fixed": []}, "fixed must be a table"),
        ({"axes": 3}, "axes must be a table"),
        ({"axes": {}}, "axes must name the parameters"),
        ({"quick": "yes"}, "quick must be true or false; got 'yes'"),
        ({"axes": {"width": [5, "x"]}}, "width must be a whole number; got 'x'"),
        ({"axes": {"width": [5, True]}}, "width must be a whole number; got True"),
        ({"axes": {"width": [5, 1.5]}}, "width must be a whole number; got 1.5"),
        ({"axes": {"width": [5, 0]}}, "width must be a whole number of at least 1; got 0"),
        ({"axes": {"width": {"from": 1, "to": 2.5, "count": 3}}}, "whole numbers up to 2.53 as"),
        ({"axes": {"width": {"from": 1, "to": 10**30}}, "draws": 3}, "whole numbers up to"),
        ({"axes": {"width": {"from": 0, "to": 3}}, "draws": 3}, "at least 1; got 0"),
        ({"axes": {"width": {"from": 1, "to": 10**400}}}, "numbers as its ends"),
        ({"axes": {"learning_rate": ["a", "b"]}}, "learning_rate must be a finite number; got 'a'"),
        ({"axes": {"learning_rate": [1e-3, np.nan]}}, "learning_rate must be a finite number"),
        ({"axes": {"precision": ["float64", "float16"]}}, "precision must be one of"),
        ({"axes": {"positive": [4], "noise": [1, 2]}}, "positive must leave at least one"),
        ({"axes": {"noise": {"from": 1, "to": 2, "count": 10**8}}}, "count must be at most"),
        (
            {"fixed": {}, "axes": {name: range(1, 400) for name in ("width", "steps", "positive")}},
            "runs of a sweep must be at most 1,000,000; got 127,042,398",
        ),
        ({"seeds": 10_000_000}, "seeds must be at most 1,000,000; got 10,000,000"),
        ({"seeds": 10**4000}, "seeds must be at most 1,000,000; got 1000"),
        ({"draws": 10_000_000}, "draws must be at most 100,000; got 10,000,000"),
        ({"draws": 100_000, "seeds": 11}, "runs of a sweep must be at most 1,000,000; got 1,100,0"),
        ({"axes": {"noise": range(1, 100_000)}}, "values of all axes must be at most 10,000"),
        ({"axes": {"noise": [1] * 10_000}}, "different values, one at least; got .{60}\\.$"),
    ],
)
def test_bad_designs(changes, message):
    with pytest.raises(InputError, match=message):
        small(**changes)


def test_a_design_from_a_file_is_the_same(tmp_path):
    design = Design.from_file(faults.toml(tmp_path / "a.toml"))
    assert [job.id for job in design.jobs()] == [job.id for job in small().jobs()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("experiment = 1 2", "must be a TOML file"),
        ("seeds = " + "1" * 5000, "must be a TOML file"),
        ("a = " + "[" * 100_000, "must be a TOML file; maximum recursion depth exceeded"),
        ('experiment = ["averaging"]\n[axes]\nwidth = [1]', "experiment must be one of"),
        ('experiment = "averaging"', "must have experiment and axes"),
        ('experiment = "nope"\n[axes]\nwidth = [1]', "experiment must be one of"),
        ('experiment = "averaging"\nwhat = 1\n[axes]\nwidth = [1]', "must have experiment and"),
        ('experiment = "averaging"\naxes = 3', "axes must be a table of parameters; got 3"),
        ('experiment = "averaging"\naxes = [1, 2]', "axes must be a table"),
        ('experiment = "averaging"\nfixed = [1]\n[axes]\nwidth = [1]', "fixed must be a table"),
        ('experiment = "averaging"\n[axes]', "axes must name the parameters"),
        ('experiment = "averaging"\nquick = "yes"\n[axes]\nwidth = [1]', "quick must be true or"),
        ('experiment = "phase-imbalance"\n[axes]\nwidth = [1]', "has axes of its own"),
    ],
)
def test_bad_files(text, message, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Design.from_file(path)


def test_ranges():
    assert Axis.of("a", {"from": 1, "to": 3, "count": 3}).values == (1, 2, 3)
    assert Axis.of("a", {"from": 1e-4, "to": 1, "count": 5, "scale": "log"}).values == (
        1e-4,
        1e-3,
        1e-2,
        0.1,
        1.0,
    )
