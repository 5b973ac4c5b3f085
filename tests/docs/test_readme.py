"""Everything printed in the README and the examples is executed."""

from __future__ import annotations

import re

from featavg.apps.cli.experiments import parse_flags
from featavg.apps.cli.main import build_parser, main
from featavg.experiments import EXPERIMENTS
from featavg.theory import LEDGER
from support import ROOT
from support.documents import blocks, execute

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_blocks_of_the_readme_print_what_the_readme_says():
    found = execute(README, "README.md")
    assert len(found) == 1
    for _, printed, said in found:
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
                options = build_parser().parse_args(arguments)
                if arguments[0] == "run":
                    parse_flags(options)
    printed = capsys.readouterr().out
    assert all(seen.values())
    assert "falls from 0.443 to 0.337" in " ".join(README.split())
    assert "0.337 ± 0.001" in printed


def _is_small(arguments):
    """Whether a command needs no data of its own, no network and less than a minute."""
    if arguments[0] == "run":
        experiment = EXPERIMENTS[arguments[1]]
        return experiment.data is None and not experiment.has_own_axes
    return arguments[0] in ("list", "theory")


def test_the_readme_says_how_pages_get_their_numbers_where_it_links_the_first():
    first = next(part for part in README.split("\n\n") if re.search(r"\]\(docs/[^)]*\.md\)", part))
    assert "`make docs` builds it and all other pages" in first


def test_the_readme_says_how_many_claims_there_are():
    assert f"statement of the paper, {len(LEDGER)} of them" in " ".join(README.split())


def test_local_links_of_the_readme_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    for link in links:
        assert (ROOT / link).exists(), link
