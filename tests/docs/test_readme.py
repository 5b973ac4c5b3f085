"""Everything printed in the README and the examples is executed."""

from __future__ import annotations

import re
import runpy
import tomllib

import pytest

import featavg as fa
from featavg.apps.cli.main import build_parser, main
from featavg.experiments import REGISTRY
from support import ROOT
from support.documents import blocks, execute

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_block_of_the_readme_prints_what_the_readme_says():
    ((_, printed, said),) = execute(README, "README.md")
    assert printed == said


def test_commands_of_the_readme_do_what_the_readme_says(capsys, tmp_path):
    lines = [line for block in blocks(README, "console") for line in block.splitlines()]
    lines = [line.removeprefix("$ ").split("#")[0].strip() for line in lines]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    seen = {"featavg": 0, "make": 0}
    for line in lines:
        program, *arguments = line.split()
        if program in seen:
            seen[program] += 1
        if program == "make":
            assert re.search(rf"^{arguments[0]}:", makefile, flags=re.MULTILINE), line
        elif program == "featavg" and "--help" not in arguments:
            if _is_small(arguments):
                where = [] if arguments[0] == "list" else ["--out", str(tmp_path)]
                main([*arguments, *where])
            else:  # those have tests of their own; here they have to be what the program takes
                build_parser().parse_args(arguments)
    printed = capsys.readouterr().out
    assert all(seen.values())
    assert "falls from 0.443 to 0.337" in " ".join(README.split())
    assert "0.337 ± 0.001" in printed


def _is_small(arguments):
    """Whether a command needs no data of its own, no network and less than a minute."""
    if arguments[0] == "run":
        experiment = REGISTRY[arguments[1]]
        return experiment.data is None and experiment.design is None
    return arguments[0] in ("list", "theory")


def test_local_links_of_the_readme_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")


def test_public_names_have_a_docstring_and_an_example():
    for name in set(fa.__all__) - {"__version__"}:
        thing = getattr(fa, name)
        assert thing.__doc__, name
        documented = thing.__doc__ + "".join(
            (getattr(member, "__doc__", None) or "") for member in vars(thing).values()
        )
        assert ">>>" in documented or name in {
            "AttackResult",
            "Radii",
            "RobustCurve",
            "Trajectory",
        }, name


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {project['version']}" in citation
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert "torch==2.13.0" in constraints
