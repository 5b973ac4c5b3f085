"""Everything printed in the documentation is executed, or at least understood."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import featavg as fa
from featavg.apps.cli.experiments import parse_flags
from featavg.apps.cli.main import build_parser
from featavg.experiments import EXPERIMENTS, run
from support import ROOT
from support.command import command
from support.documents import OTHERS, blocks, commands, execute, fenced

DOCS = ROOT / "docs"
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not {"_build", "_vendor", "generated"} & set(page.relative_to(DOCS).parts)
)
sys.path[:0] = [str(DOCS), str(DOCS / "_ext"), str(ROOT / "tools")]

import mathjax  # noqa: E402
import ship_results  # noqa: E402
from ivars import separate  # noqa: E402
from runs import Address, written  # noqa: E402


def named(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def languages(page: Path) -> set[str]:
    return {block.language for block in fenced(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", [p for p in PAGES if "python" in languages(p)], ids=named)
def test_python_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / "cache"))
    for line, printed, said in execute(page.read_text(encoding="utf-8"), str(page)):
        assert printed == said, f"{named(page)}, line {line}"


@pytest.mark.parametrize("page", [p for p in PAGES if "import torch" in p.read_text()], ids=named)
def test_a_page_says_how_pytorch_is_installed_before_it_is_imported(page):
    before, _, _ = page.read_text(encoding="utf-8").partition("import torch")
    assert "pip install 'featavg[vision]'" in before


def test_certifying_a_scikit_learn_model_needs_no_pytorch(tmp_path, monkeypatch):
    """Everything on the page runs, and is saved, without the blocks that have a PyTorch module."""
    page = (DOCS / "howto" / "certify.md").read_text(encoding="utf-8")
    needed = [text for text in blocks(page, "python") if not re.search(r"\b(torch|module)\b", text)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    exec("\n".join(needed), {"__name__": "page"})  # noqa: S102
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("page", [p for p in PAGES if "console" in languages(p)], ids=named)
def test_commands_of_a_page_are_understood(page, capsys):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    parser = build_parser()
    for program, *arguments in commands(page.read_text(encoding="utf-8")):
        if program == "make":
            assert re.search(rf"^{arguments[0]}:", makefile, flags=re.MULTILINE), arguments
        elif program == "featavg":
            code = 0
            try:
                options = parser.parse_args(arguments)
                if arguments[0] == "run" and ".py" not in arguments[1]:
                    parse_flags(options)
            except SystemExit as end:  # with 0 after --help
                code = end.code
            assert code == 0, f"featavg {' '.join(arguments)}: {capsys.readouterr().err}"
        else:
            assert program in OTHERS, program


def test_the_experiment_of_its_page_is_run_as_the_page_says(tmp_path, monkeypatch, capsys):
    """Saved as it says, its commands end well: for every split, and in a sweep."""
    page = (DOCS / "howto" / "experiment.md").read_text(encoding="utf-8")
    lines = "".join(blocks(page, "python")).splitlines()
    (tmp_path / "split.py").write_text("\n".join(lines[:-3]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    typed = [words[1:] for words in commands(page) if "./split.py" in words]
    assert {arguments[0] for arguments in typed} == {"run", "sweep"}
    typed += [["run", "./split.py", "--positive", str(p), "--quick"] for p in (2, 3, 4, 5)]
    for arguments in typed:
        few = ["--workers", "1"] if arguments[0] == "sweep" else []
        code, out, error = command(capsys, *arguments, *few)
        assert code == 0, (arguments, out, error)
        assert "Warning" not in error
    sys.modules.pop("split")


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for page in PAGES:
        for block in fenced(page.read_text(encoding="utf-8")):
            if block.language == "{toctree}":
                lines = [line for line in block.text.splitlines() if line[:1] not in ("", ":")]
                listed |= {f"{line}.md" for line in lines}
    assert listed == {named(page) for page in PAGES} - {"index.md"}


def test_pages_hold_no_number_that_a_run_should_give():
    """On the page of findings digits come from roles, or belong to a setting or a theorem."""
    text = (DOCS / "found.md").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|\{[\w-]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", "", text, flags=re.DOTALL)
    settings = (
        r"(Theorems?|Lemmas?|Figures?|Proposition|Section|and|to) [A-D]?\.?\d[\d.]*|\d+-class"
    )
    assert not re.findall(r"\d+\.\d+", re.sub(settings, "", text))


def test_attributes_that_end_in_an_underscore():
    assert separate([":ivar a_, b: text", "  more"]) == [
        ":ivar a\\_: text",
        ":ivar b: text",
        "  more",
    ]


def test_addresses_of_numbers():
    address = Address.of("figure3-synthetic:robust_accuracy?classes=2&method=pgd .0%")
    assert (address.experiment, address.form) == ("figure3-synthetic", ".0%")
    assert Address.of("ledger[preset=theorem]:violated").command == (
        "featavg run ledger --preset theorem"
    )
    with pytest.raises(ValueError, match="EXPERIMENT"):
        Address.of("figure99:nothing")


def test_a_number_is_read_from_the_run_it_names(tmp_path):
    experiment = EXPERIMENTS["figure3-synthetic"]
    folder = tmp_path / experiment.id / experiment.key(experiment.quick)
    address = Address.of("figure3-synthetic:coarse_radius .1f")
    assert address.find(tmp_path) is None
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"expectations": []}), encoding="utf-8")
    (folder / "scalars.csv").write_text("seed,coarse_radius\n0,17.25\n1,17.75\n", encoding="utf-8")
    rows = "seed,method,robust_accuracy\n0,pgd,0.5\n0,exact,0.25\n1,pgd,0.75\n"
    (folder / "results.csv").write_text(rows, encoding="utf-8")
    found = address.find(tmp_path)
    assert found.quick
    assert written(found.values("coarse_radius"), ".1f") == "17.5 ± 0.4"
    assert found.values("robust_accuracy?method=pgd") == [0.5, 0.75]
    with pytest.raises(KeyError, match="has no"):
        found.values("robust_accuracy?method=guess")
    usual = tmp_path / experiment.id / experiment.key(experiment.parameters)
    shutil.copytree(folder, usual)
    assert not address.find(tmp_path).quick  # the usual parameters come first


def test_shipped_numbers_stand_in_for_a_run_that_is_missing(tmp_path):
    experiment = EXPERIMENTS["figure1"]
    finished = run(experiment, experiment.quick, seeds=1, out=tmp_path / "runs")
    shipped = tmp_path / "shipped" / experiment.id / finished.folder.name
    ship_results.ship(finished.folder, shipped)
    assert {path.name for path in shipped.iterdir()} == set(ship_results.FILES)
    quantity = next(name for name, value in finished.results.items() if value.ndim == 1)
    address = Address.of(f"figure1:{quantity}")
    here = address.find(tmp_path / "runs", tmp_path / "shipped")
    stands_in = address.find(tmp_path / "elsewhere", tmp_path / "shipped")
    assert not here.is_shipped
    assert stands_in.is_shipped
    assert stands_in.values(quantity) == here.values(quantity)
    assert f"made with featavg {fa.__version__}" in stands_in.place
    assert address.find(tmp_path / "elsewhere", tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [(0.1985, ".0%", "20 %"), (-1.5, ".1f", "−1.5"), (1.06e-12, ".1e", "1.1·10⁻¹²")],
)
def test_numbers_as_they_are_written(value, form, text):
    assert written([value], form) == text
    assert written([value, value], form) == text


def test_mathjax_is_checked_before_it_is_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mathjax, "VENDOR", tmp_path / "vendor")
    monkeypatch.setattr(mathjax.shutil, "which", lambda _: None)
    assert mathjax.main() == 1
    assert "npm is not installed" in capsys.readouterr().err
    fake = tmp_path / "npm"
    fake.write_text(f"#!/bin/sh\necho no > mathjax-{mathjax.VERSION}.tgz\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr(mathjax.shutil, "which", lambda _: str(fake))
    assert mathjax.main() == 2
    assert "must have the SHA-256" in capsys.readouterr().err
    assert not (tmp_path / "vendor").exists()


def test_the_documentation_builds_where_nothing_was_run(tmp_path, monkeypatch):
    """A fresh machine: no runs, one that is not shipped either, no MathJax, and yet no warning."""
    source, html = tmp_path / "docs", tmp_path / "html"
    ignored = shutil.ignore_patterns("_build", "_vendor", "generated", "ledger")
    shutil.copytree(DOCS, source, ignore=ignored)
    (tmp_path / "notebooks").mkdir()
    for page in (DOCS / "notebooks").glob("*.md"):  # test_notebooks.py runs the real ones
        draw = "for _ in range(5):\n    pyplot.figure().gca().plot([1])\n"
        text = f"# %% [markdown]\n# # Title\n# %%\nfrom matplotlib import pyplot\n{draw}"
        (tmp_path / "notebooks" / f"{page.stem}.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        source,
        html,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "featavg run ledger --preset theorem" in done.stderr
    found = (html / "found.html").read_text(encoding="utf-8")
    assert "not run here" in found
    assert "<math" in found
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="https?://', found)
    gallery = (html / "gallery.html").read_text(encoding="utf-8")
    assert all(f"plot-{name}.png" in gallery for name in fa.plot.__all__)
    assert "the_idea-5.png" in gallery
    assert "pyplot.figure" in re.sub("<[^>]+>", "", (html / "notebooks/the_idea.html").read_text())
