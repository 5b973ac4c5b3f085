"""Numbers, tables and figures of a page that are read from the folder of runs.

Roles: ``num`` is a number of a run; ``paper`` is what the paper says of it; ``paper-curve`` is a
point of its Figure 3. Directives: ``expectations``, ``conclusion``, ``violated``, ``run-figure``,
``runs-behind``. A number whose run is missing is taken from the shipped results, and is shown as
"not run here", with the command that runs it, if it is not there either.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from runs import Address, FoundRun, written
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

from featavg.lab import registry
from featavg.paper import figure3_curve
from featavg.theory import OURS

SHIPPED = Path(__file__).parents[1] / "results" / "shipped"
"""The numbers of long runs, without arrays and pictures, from `tools/ship_results.py`."""

_MISSING = "not run here"
_NEEDED: dict[str, set[str]] = {}  # the commands of missing runs, and the pages that use them


def _find(env: Any, text: str) -> tuple[Address, FoundRun | None]:
    """Return an address and its run, and remember that the page uses it."""
    address = Address.of(text)
    found = address.find(Path(env.config.featavg_runs), SHIPPED)
    used = env.temp_data.setdefault("featavg_used", {})
    used[address.command] = (address, found)
    env.note_reread()  # runs change without the page changing
    if found is None:
        _NEEDED.setdefault(address.command, set()).add(env.docname)
    else:
        env.note_dependency(str(found.path / "summary.json"))
    return address, found


def _inline(text: str, title: str, kind: str = "num") -> nodes.Node:
    """Return a number whose tooltip names its run."""
    safe = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    shown = text.replace("&", "&amp;").replace("<", "&lt;")
    html = f'<span class="{kind}" title="{safe}">{shown}</span>'
    return nodes.raw("", html, format="html")


class NumberRole(SphinxRole):
    """A number of a run: its mean, and the standard deviation over seeds."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number, or that its run is missing."""
        address, found = _find(self.env, self.text)
        if found is None:
            return [_inline(_MISSING, address.command, "num missing")], []
        text = written(found.values(address.quantity), address.form)
        where = f"{found.place}, {found.summary['seeds']} seeds"
        shown: list[nodes.Node] = [_inline(text, f"{address.quantity} of {where}")]
        if found.quick:
            shown.append(nodes.superscript("", "quick"))
        return shown, []


class PaperRole(SphinxRole):
    """The paper's value of a quantity, as the run recorded it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the paper's number, or that its run is missing."""
        address, found = _find(self.env, self.text)
        if found is None:
            return [_inline(_MISSING, address.command, "num missing")], []
        text = found.expectation(address.quantity)["paper"] or "–"
        return [_inline(text, "the paper")], []


class PaperCurveRole(SphinxRole):
    """A point of Figure 3 of the paper, ``panel:classes:radius format``, read off its pixels."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the accuracy."""
        place, _, form = self.text.partition(" ")
        panel, classes, radius = place.split(":")
        radii, accuracy = figure3_curve(panel, int(classes))
        (index,) = (i for i, r in enumerate(radii) if abs(r - float(radius)) < 1e-6)
        text = written([float(accuracy[index])], form or ".0%")
        return [_inline(text, "read off Figure 3 of the paper")], []


class _RunDirective(SphinxDirective):
    """A directive that shows a whole run."""

    required_arguments = 1
    final_argument_whitespace = True

    def found(self) -> tuple[Address, FoundRun | None]:
        return _find(self.env, self.arguments[0])

    def missing(self, address: Address) -> list[nodes.Node]:
        return _parsed(self, f":::{{note}}\nNot run here. `{address.command}` makes it.\n:::")


class Expectations(_RunDirective):
    """The table of a run: the expectations, the paper's numbers and ours."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        address, run = self.found()
        if run is None:
            return self.missing(address)
        rows = []
        for entry in run.summary["expectations"]:
            ours = written(entry["values"], ".3g")
            held = entry["rule"] if entry["rule"] == "reported" else _verdict(entry["holds"])
            rows.append((entry["statement"], entry["paper"] or "–", ours, held))
        shown = _table(self, ("", "paper", "ours", "expected"), rows, numbers=(1, 2))
        if run.quick:
            shown += _parsed(self, f"(`{address.command} --quick`, a smaller setting.)")
        return shown


class Conclusion(_RunDirective):
    """The result of a run in its own words."""

    def run(self) -> list[nodes.Node]:
        """Return the paragraph."""
        address, run = self.found()
        if run is None:
            return self.missing(address)
        quote = nodes.block_quote()
        quote += nodes.paragraph("", run.summary["conclusion"])
        return [quote]


class Violated(_RunDirective):
    """The claims of the paper that did not hold in every seed."""

    def run(self) -> list[nodes.Node]:
        """Return the table, the worst first."""
        address, run = self.found()
        if run is None:
            return self.missing(address)
        worst: dict[str, dict[str, str]] = {}
        for row in run.rows("results.csv"):
            if row["verdict"] != "violated" or row["claim"] in OURS:
                continue
            kept = worst.get(row["claim"])
            if kept is None or float(row["slack"]) < float(kept["slack"]):
                worst[row["claim"]] = row
        rows = [
            (
                _claim_name(row["claim"]) + (" †" if row["reading"] else ""),
                row["statement"],
                row["bound"],
                written([float(row["measured"])], ".2g"),
                written([float(row["limit"])], ".2g"),
            )
            for row in sorted(worst.values(), key=lambda row: float(row["slack"]))
        ]
        names = ("claim", "what it says", "bound", "measured", "allowed")
        return _table(self, names, rows, numbers=(3, 4), wide=True)


class RunFigure(_RunDirective):
    """The figure of a run, or a committed one in its place."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "alt": directives.unchanged_required,
        "otherwise": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Return the figure."""
        address, found = self.found()
        caption = "\n".join(self.content)
        if found is not None and not found.is_shipped:
            name = f"{found.path.parent.name}-{found.path.name}.png"
            picture = Path(self.env.srcdir) / "_build" / "pictures" / name
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.path / "figure.png", picture)
            where = f"/_build/pictures/{name}"
            made = f"`{address.command}{' --quick' if found.quick else ''}`"
        elif "otherwise" in self.options:
            where = self.options["otherwise"]
            made = f"the committed picture; `{address.command}` makes it"
        else:
            return self.missing(address)
        caption = f"{caption} ({made})"
        text = f":::{{figure}} {where}\n:alt: {self.options['alt']}\n\n{caption}\n:::"
        return _parsed(self, text)


class RunsBehind(SphinxDirective):
    """The list of all runs that the page above has used."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        used: dict[str, Any] = self.env.temp_data.get("featavg_used") or {}
        rows = []
        for command, (address, found) in used.items():
            if found is None:
                rows.append((f"`{command}`", _MISSING, "–", "–", "–"))
                continue
            source = found.provenance["versions"]["source"]
            now = registry.find(address.experiment).source
            same = "this" if source == now else f"another ({source})"
            shown = command + (" --quick" if found.quick else "")
            seconds = f"{found.provenance['seconds']:.0f} s"
            where = f"{found.path.name}{' (shipped)' if found.is_shipped else ''}"
            rows.append((f"`{shown}`", where, str(found.summary["seeds"]), seconds, same))
        names = ("command", "folder", "seeds", "time", "source code")
        return _table(self, names, rows, numbers=(2, 3), wide=True)


def _claim_name(claim: str) -> str:
    """Return ``lemma-a.13`` as Lemma A.13, and what stands after the number behind a comma."""
    kind, _, rest = claim.partition("-")
    number, *words = re.split(r"\.(?=[a-z]{2})", rest)
    return ", ".join([f"{kind.capitalize()} {number[:1].upper()}{number[1:]}", *words])


def _verdict(holds: bool) -> str:
    return "holds" if holds else "**does not hold**"


def _table(
    directive: SphinxDirective,
    names: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    numbers: tuple[int, ...] = (),
    *,
    wide: bool = False,
) -> list[nodes.Node]:
    """Return a table; cells are Markdown. A wide one scrolls on a phone."""
    rule = ["--:" if i in numbers else "---" for i in range(len(names))]
    cells = [[cell.replace("|", "\\|").replace("_", "\\_") for cell in row] for row in rows]
    lines = ["| " + " | ".join(line) + " |" for line in (names, rule, *cells)]
    found = _parsed(directive, "\n".join(lines))
    for node in found:
        if wide and isinstance(node, nodes.table):
            node["classes"].append("wide")
    return found


def _parsed(directive: SphinxDirective, text: str) -> list[nodes.Node]:
    return directive.parse_text_to_nodes(text)


def _tell(app: Sphinx, error: Exception | None) -> None:
    """Print the missing runs and the commands that make them."""
    if error is not None or not _NEEDED:
        return
    lines = [f"These runs are not in {app.config.featavg_runs} and are shown as {_MISSING!r}:"]
    for command, pages in sorted(_NEEDED.items()):
        data = registry.find(command.split()[2]).data
        first = f"featavg data get {data} && " if data else ""
        lines.append(f"  {first}{command}   (for {', '.join(sorted(pages))})")
    print("\n".join(lines), file=sys.stderr)  # also with -q, and not a warning


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the roles and directives."""
    app.add_config_value("featavg_runs", "../runs", "env", str)
    app.add_role("num", NumberRole())
    app.add_role("paper", PaperRole())
    app.add_role("paper-curve", PaperCurveRole())
    app.add_directive("expectations", Expectations)
    app.add_directive("conclusion", Conclusion)
    app.add_directive("violated", Violated)
    app.add_directive("run-figure", RunFigure)
    app.add_directive("runs-behind", RunsBehind)
    app.connect("build-finished", _tell)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
