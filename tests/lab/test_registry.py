"""Experiments of installed packages and of files."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from featavg import InputError
from featavg.experiments import EXPERIMENTS
from featavg.lab import registry
from support import mine


@pytest.fixture
def installed(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def install(**targets):
        points = [EntryPoint(name, value, "featavg.experiments") for name, value in targets.items()]
        own = EntryPoint("builtin", "featavg.experiments:EXPERIMENTS", "featavg.experiments")
        monkeypatch.setattr(registry, "entry_points", lambda group: [*points, own])
        registry._loaded.cache_clear()

    yield install
    registry._loaded.cache_clear()


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a Python file in a folder of its own, and forget its module afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = []

    def write(text, name="somebodys_experiment.py"):
        (tmp_path / name).write_text(text)
        names.append(name.removesuffix(".py"))
        return tmp_path / name

    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_the_experiments_of_featavg_are_found_by_its_own_entry_point():
    assert list(registry.experiments()) == list(EXPERIMENTS)
    assert registry.find("averaging") is EXPERIMENTS["averaging"]
    assert registry.address(EXPERIMENTS["averaging"]) == "averaging"
    assert registry.broken_plugins() == ()


def test_experiments_of_other_packages_come_after_them(installed):
    installed(another="support.mine:EXPERIMENT")
    assert list(registry.experiments()) == [*EXPERIMENTS, "mine"]
    assert registry.find("mine") is mine.EXPERIMENT


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:EXPERIMENT", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("support.mine:NOTHING", "AttributeError: module 'support.mine' has no attribute"),
        ("support.mine:TEXT", "must be Experiment objects"),
        ("featavg.experiments:EXPERIMENTS", "there is another experiment 'figure1'"),
    ],
)
def test_a_broken_plugin_is_named_and_leaves_the_others(installed, value, reason):
    installed(broken=value, works="support.mine:EXPERIMENT")
    assert list(registry.experiments()) == [*EXPERIMENTS, "mine"]
    (sentence,) = registry.broken_plugins()
    assert sentence.startswith(f"plugin 'broken' ({value}) cannot be used: ")
    assert reason in sentence
    with pytest.raises(InputError, match="plugin 'broken'"):
        registry.find("something")


def test_the_experiment_of_a_file(file):
    found = registry.find(str(file(mine.TEXT)))
    assert (found.id, found.measure.__module__) == ("mine", "somebodys_experiment")
    assert registry.find(f"{file(mine.TEXT)}:mine") is found
    assert registry.find("somebodys_experiment.py", folder=file(mine.TEXT).parent) is found
    assert registry.find(registry.address(found)) is found


def test_a_file_may_have_several_and_import_its_neighbour(file):
    file("NAME = 'second'\n", "a_neighbour.py")
    text = (
        "from dataclasses import replace\nfrom a_neighbour import NAME\n"
        "from support.mine import EXPERIMENT as FIRST\n"
        "EXPERIMENTS = [FIRST, replace(FIRST, id=NAME)]\n"
    )
    path = file(text)
    assert registry.find(f"{path}:second") == replace(mine.EXPERIMENT, id="second")
    with pytest.raises(InputError, match="must be followed by one of :mine, :second"):
        registry.find(str(path))
    with pytest.raises(InputError, match="must be followed by one of :mine, :second"):
        registry.find(f"{path}:third")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\n", "must define EXPERIMENT or EXPERIMENTS, and has neither"),
        (
            "EXPERIMENT = 3\n",
            "cannot be used: experiments must be Experiment objects, one at least; got 3",
        ),
        ("EXPERIMENTS = []\n", "must be Experiment objects, one at least"),
        (mine.TEXT.replace('id="mine"', 'id="figure1"'), "id must be another than that of an exp"),
        (
            mine.TEXT.replace('id="mine"', 'id="../../escaped"'),
            "an experiment must be of letters, digits, '-' and '_' because it names a folder; got",
        ),
        ("import os\n\n1 / 0\n", "cannot be imported: ZeroDivisionError in line 3: division by"),
        ("def f(:\n", "cannot be imported: SyntaxError in line 1: "),
        ("import no_such_module\n", "cannot be imported: ModuleNotFoundError in line 1: No module"),
        ("import sys\nsys.exit(3)\n", "cannot be imported: SystemExit in line 2: 3"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(file, text, reason):
    path = file(text)
    with pytest.raises(InputError) as raised:
        registry.find(str(path))
    assert str(raised.value).startswith(f"{path} ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_may_hand_on_an_experiment_of_featavg(file):
    path = file("from featavg.experiments.figure1 import EXPERIMENT\n")
    assert registry.find(str(path)) is EXPERIMENTS["figure1"]


def test_files_that_cannot_be_imported_by_their_name(file, tmp_path):
    with pytest.raises(InputError, match="there is no file .*missing.py"):
        registry.find(str(tmp_path / "missing.py"))
    with pytest.raises(InputError, match="must have a name that Python can import"):
        registry.find(str(file(mine.TEXT, "not-a-name.py")))
    path = tmp_path / "json.py"
    path.write_text(mine.TEXT)
    with pytest.raises(InputError, match="must have another name because 'json' is another mod"):
        registry.find(str(path))


@pytest.mark.parametrize("address", ["nothing", "", None, 3])
def test_an_unknown_experiment_is_refused_with_where_to_find_them(address):
    with pytest.raises(InputError, match="one of those that 'featavg list' shows, .* got ") as told:
        registry.find(address)
    assert len(str(told.value)) < 120
