"""Run folders made by hand, with whatever is asked for in them, and the pages made of them."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from featavg.lab.experiment import run_key

VERSIONS = {"python": "3.11", "featavg": "0.1.0", "source": "0123456789ab"}


def expectation(**changes: Any) -> dict[str, Any]:
    usual = {
        "statement": "2-class: averaging index",
        "quantity": "coarse_index",
        "paper": "1",
        "rule": "≥ 0.9",
        "mean": 0.9852,
        "std": 0.0091,
        "values": [0.9852, 0.9861],
        "holds": True,
    }
    return usual | changes


def run_folder(
    root: Path,
    experiment: str = "figure2-synthetic",
    *,
    parameters: dict[str, Any] | None = None,
    summary: dict[str, Any] | None = None,
    provenance: dict[str, Any] | None = None,
    views: Any = None,
) -> Path:
    """Write a folder with the right name for its parameters, and return it."""
    about = {"experiment": experiment, "parameters": parameters or {"dim": 7}}
    folder = root / experiment / run_key(about)
    (folder / "seeds").mkdir(parents=True)
    finished = about | {
        "seeds": 2,
        "holds": True,
        "conclusion": "",
        "expectations": [expectation()],
    }
    files = {
        "parameters.json": about,
        "summary.json": finished | (summary or {}),
        "provenance.json": {"versions": VERSIONS, "seconds": 1.5} | (provenance or {}),
    }
    for seed in range(2):
        files[f"seeds/{seed}.json"] = {"seed": seed, "seconds": 0.75, "versions": VERSIONS}
    if views is not None:
        files["views.json"] = views
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


def svg(extra: str = "") -> str:
    return f'<svg width="72pt" height="36pt" xmlns="http://www.w3.org/2000/svg">{extra}</svg>'


class Page(HTMLParser):
    """What a browser would make of a page: its elements, and its text."""

    def __init__(self, path: Path):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.text += " "

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
