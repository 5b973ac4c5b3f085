from __future__ import annotations

import tomllib

import featavg as fa
from support import ROOT


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
            *("Activation", "Loss", "Norm", "Rule"),  # docs/architecture.md has examples of these
        }, name


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {project['version']}" in citation
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert "torch==2.13.0" in constraints
