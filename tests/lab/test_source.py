"""Which changes of the code make saved results stale."""

from __future__ import annotations

import functools
import importlib
import shutil
import sys

import pytest

from featavg.experiments import averaging, figure2
from featavg.lab.source import code_hash, package_hash

FILES = {
    "__init__.py": "",
    "experiment.py": '"""An experiment."""\n\nfrom plugin import near\nfrom .far import value\n\n\n'
    'def measure():\n    """Measure."""\n    import plugin.late\n    return near.x + value\n',
    "near.py": "x = 1  # a comment\n",
    "far.py": "from plugin.sub import deep\n\nvalue = deep\n",
    "sub/__init__.py": "from plugin.sub.below import deep\n",
    "sub/below.py": "deep = 3\n",
    "late.py": "from featavg.errors import InputError\n",
    "unrelated.py": "x = 1\n",
}


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package with an experiment, and a function that measures its hash anew."""
    folder = tmp_path / "plugin"
    (folder / "sub").mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("plugin.experiment")
    yield folder, lambda: code_hash(module.measure)
    for name in [name for name in sys.modules if name.partition(".")[0] == "plugin"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("near.py", "x = 2\n"),
        ("far.py", FILES["far.py"] + "more = 1\n"),
        ("sub/__init__.py", FILES["sub/__init__.py"] + "more = 1\n"),
        ("sub/below.py", "deep = 4\n"),
        ("late.py", FILES["late.py"] + "more = 1\n"),
        ("experiment.py", FILES["experiment.py"].replace("near.x +", "near.x -")),
    ],
)
def test_code_that_is_imported_counts(plugin, file, text):
    folder, source = plugin
    before = source()
    (folder / file).write_text(text)
    assert source() != before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("unrelated.py", "x = 2\n"),
        (
            "near.py",
            '"""Now with a docstring."""\n\nx = (\n    1\n)  # another one\n"""Its."""',
        ),
        ("experiment.py", FILES["experiment.py"].replace("Measure.", "Return a number.")),
        ("__init__.py", '"""The package: nothing is imported from it."""\nx = 1\n'),
    ],
)
def test_docstrings_formatting_and_other_modules_do_not(plugin, file, text):
    folder, source = plugin
    before = source()
    (folder / file).write_text(text)
    assert source() == before


def test_the_place_of_a_package_does_not_count(plugin, tmp_path, monkeypatch):
    folder, source = plugin
    before = source()
    shutil.copytree(folder, tmp_path / "elsewhere" / "plugin")
    for name in [name for name in sys.modules if name.partition(".")[0] == "plugin"]:
        del sys.modules[name]
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    assert code_hash(importlib.import_module("plugin.experiment").measure) == before


def test_experiments_of_featavg_depend_on_the_modules_they_use(tmp_path, monkeypatch):
    """In a copy of the package, so that its modules can be changed."""
    from featavg.lab import source

    root = tmp_path / "featavg"
    shutil.copytree(
        source._PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__", "assets", "*.csv")
    )
    monkeypatch.setattr(source, "_PACKAGE", root)
    for module in (figure2, averaging):
        place = root / "experiments" / f"{module.__name__.rpartition('.')[2]}.py"
        monkeypatch.setattr(module, "__file__", str(place))
    before = [code_hash(module.measure) for module in (figure2, averaging)]

    def changed(name, text="\nmore = 1\n"):
        with (root / name).open("a") as file:
            file.write(text)
        after = [code_hash(module.measure) for module in (figure2, averaging)]
        differs = [new != old for new, old in zip(after, before, strict=True)]
        before[:] = after
        return differs

    assert changed("training/descent.py") == [True, True]
    assert changed("robustness/exact/search.py") == [False, True]
    assert changed("training/descent.py", "\n# a comment\n") == [False, False]
    for name in ("apps/cli/main.py", "vision/curves.py", "experiments/phase.py", "__init__.py"):
        assert changed(name) == [False, False]
    for name in ("drawing/draw.py", "drawing/views.py"):  # only draw what was measured
        assert changed(name) == [False, False]


def test_an_experiment_that_uses_names_of_the_package_depends_on_what_they_do(
    plugin, tmp_path, monkeypatch
):
    """`import featavg as fa` imports names on use, which no import statement shows."""
    from featavg.lab import source

    folder, hashed = plugin
    (folder / "near.py").write_text("import featavg as fa\n\nx = 1\n")
    root = tmp_path / "featavg"
    ignored = shutil.ignore_patterns("__pycache__", "assets", "*.csv")
    shutil.copytree(source._PACKAGE, root, ignore=ignored)
    monkeypatch.setattr(source, "_PACKAGE", root)
    before = hashed()
    with (root / "training" / "descent.py").open("a") as file:
        file.write("\nmore = 1\n")
    assert hashed() != before


def test_what_is_in_no_file_is_never_the_same():
    names: dict[str, object] = {"__name__": "interactive"}
    exec("def measure(): pass", names)  # noqa: S102
    assert code_hash(names["measure"]) != code_hash(names["measure"])


def test_partial_functions_methods_and_objects_are_where_their_code_is():
    class Callable:
        def __call__(self):
            pass

        def method(self):
            pass

    here = code_hash(test_partial_functions_methods_and_objects_are_where_their_code_is)
    for callable_ in (Callable, Callable(), Callable().method, functools.partial(Callable, 1)):
        assert code_hash(callable_) == here
    assert code_hash(functools.partial(averaging.measure, 1)) == code_hash(averaging.measure)


def test_the_package_hash_sees_every_byte(tmp_path, monkeypatch):
    from featavg.lab import source

    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr(source, "_PACKAGE", tmp_path)
    before = package_hash()
    (tmp_path / "a.py").write_text("x = 1  # one")
    assert package_hash() != before
