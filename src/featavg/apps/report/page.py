"""The report: every run in a folder as one HTML page that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from featavg import __version__
from featavg.apps import html
from featavg.apps.report import wording
from featavg.apps.report.captions import CAPTIONS
from featavg.apps.report.images import Image, smallest_image
from featavg.apps.report.saved import PAPER, SavedRun, Unreadable, find_runs
from featavg.apps.report.statements import Statements
from featavg.drawing.views import Claims, View, plain
from featavg.errors import InputError
from featavg.files import is_file, write_atomically

LARGEST_PAGE = 10_000_000
"""A page has at most so many bytes; figures that do not fit are linked to."""

SCRIPTS = ("tools.js", "heatmaps.js", "curves.js", "dots.js", "page.js")
_FILES = (
    *("figure.svg", "figure.png", "results.csv"),
    *("scalars.csv", "summary.json", "parameters.json"),
)
_LISTED = 3


@dataclass(frozen=True)
class Written:
    """Where a report is, how large, and what it shows."""

    path: Path
    size: int
    runs: tuple[SavedRun, ...]
    unreadable: tuple[Unreadable, ...]


def write_report(root: Path, out: Path | None = None) -> Written:
    """Write the report of all runs in a folder, whole or not at all.

    Paper: none, an extension.

    Parameters
    ----------
    root : path
        The folder that `run` was given as `out`. What it holds is not trusted.
    out : path, optional
        The file to write; ``report.html`` in the folder by default.
    """
    runs, unreadable = find_runs(root)
    if not runs and not unreadable:
        raise InputError(f"DIR must hold runs, as 'featavg run' leaves them; got {str(root)!r}.")
    out = root / "report.html" if out is None else out
    if out.is_dir():
        raise InputError(f"out must be a file, not a folder; got {str(out)!r}.")
    content = page(runs, unreadable, beside=out.parent).encode()
    write_atomically(out, content)
    return Written(out, len(content), tuple(runs), tuple(unreadable))


def page(runs: Sequence[SavedRun], unreadable: Sequence[Unreadable], *, beside: Path) -> str:
    """Return the page; its links start from the folder `beside`.

    Figures are put into it in the order of the runs, as long as the page stays small enough.
    """
    return with_images(runs, lambda images: _render(runs, unreadable, images, beside))


def with_images(runs: Sequence[SavedRun], render: Callable[[Mapping[Path, Image]], str]) -> str:
    """Return a page with the figures of runs, in their order, that fit into it."""
    room = LARGEST_PAGE - len(render({}).encode())
    if room < 0:
        raise InputError(
            f"a report must be smaller than {LARGEST_PAGE / 1e6:g} MB, so DIR must hold fewer or "
            f"smaller runs; got {len(runs)}."
        )
    images: dict[Path, Image] = {}
    for run in runs:
        image = smallest_image(run.folder, without=run.damaged)
        needed = 0 if image is None else len(image.source) + 200
        if image is not None and needed <= room:
            images[run.folder] = image
            room -= needed
    return render(images)


def _render(
    runs: Sequence[SavedRun],
    unreadable: Sequence[Unreadable],
    images: Mapping[Path, Image],
    beside: Path,
) -> str:
    drawn: list[View] = []
    items = [item(run, images.get(run.folder), beside, drawn) for run in runs]
    parts = [
        ("figures", "Figures of the paper", [i for i in items if not i["beyond"]]),
        ("beyond", "Beyond the paper", [i for i in items if i["beyond"]]),
    ]
    return html.render(
        __package__,
        "page.html",
        scripts=SCRIPTS,
        filters=wording.FILTERS,
        data=json_for_html(plain(drawn)),
        parts=[part for part in parts if part[2]],
        statements=Statements.of(runs),
        unreadable=unreadable,
        version=__version__,
        totals={
            "runs": len(runs),
            "experiments": len({run.summary.experiment for run in runs}),
            "seconds": sum(run.provenance.seconds or 0.0 for run in runs),
        },
    )


def item(run: SavedRun, image: Image | None, beside: Path, drawn: list[View]) -> dict[str, Any]:
    """Return what the template says of a run; views for scripts to draw are added to `drawn`."""
    summary, experiment = run.summary, run.experiment
    views = []
    for view in run.views:
        if not isinstance(view, Claims):
            views.append({"index": len(drawn), "title": view.title})
            drawn.append(view)
    parameters, differences = _parameters(run), []
    if experiment is not None and run.setting != PAPER:
        differences = [f"{name} = {value}" for name, value, _, usual in parameters if not usual]
    more = ["…"] if len(differences) > _LISTED else []
    files = [name for name in _FILES if name not in run.damaged and is_file(run.folder / name)]
    source = run.provenance.versions.get("source")
    return {
        "run": run,
        "beyond": experiment is not None and experiment.series == "beyond",
        # with parameters of someone's own, another thing may be to see
        "see": CAPTIONS.get(summary.experiment, "") if run.setting else "",
        "paper": "an experiment of another version" if experiment is None else experiment.paper,
        "which": run.setting or ", ".join(differences[:_LISTED] + more),  # in lists of runs
        "differences": differences,
        "outdated": experiment is not None and source != experiment.source,
        "links": [(name, _address(run.folder / name, beside)) for name in files],
        "image": image,
        "has_figure": any(name.startswith("figure.") for name in files),
        "drawn": views,
        "claims": [view for view in run.views if isinstance(view, Claims)],
        "parameters": parameters,
    }


def _parameters(run: SavedRun) -> list[tuple[str, str, str, bool]]:
    """Return of every parameter its name, value and meaning, and whether it has its default."""
    known = {} if run.experiment is None else {f.name: f for f in fields(run.experiment.parameters)}
    usual = {} if run.experiment is None else asdict(run.experiment.parameters)
    return [
        (
            name,
            "not given" if value is None else str(value),
            known[name].metadata.get("help", "") if name in known else "",
            name in usual and usual[name] == value,
        )
        for name, value in run.summary.parameters.items()
    ]


def _address(path: Path, beside: Path) -> str:
    """Return the relative address of a file."""
    relative = Path(os.path.relpath(path.absolute(), beside.absolute()))
    return quote(relative.as_posix())


def json_for_html(value: Any) -> Markup:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704  no sign of HTML is left in it
