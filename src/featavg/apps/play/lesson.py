"""A lesson: the page of the playground in one file, with recorded trainings and no server."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from featavg.apps.html import content_policy
from featavg.apps.play.description import about
from featavg.apps.play.presets import Preset
from featavg.apps.play.recording import PLANES, record, steps_to_record
from featavg.apps.play.settings import Settings
from featavg.errors import InputError
from featavg.files import can_hold_files, write_atomically
from featavg.progress import ProgressReporter

LARGEST = 5_000_000
"""The most bytes of a lesson, so that it can be sent by mail."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) ([\w$]+))", re.MULTILINE)


def save_lesson(path: Path, menu: Sequence[Preset], *, progress: bool = True) -> int:
    """Record the training of each preset and write the lesson; return its size in bytes."""
    if path.is_dir():
        raise InputError(f"the lesson must be a file; {str(path)!r} is a folder.")
    if path.suffix not in {".html", ".htm"}:
        raise InputError(f"the lesson is a page, and its name ends in .html; got {str(path)!r}.")
    if not can_hold_files(path.absolute().parent):
        raise InputError(
            f"the lesson must be in a folder that can be written to; got {str(path)!r}."
        )
    wanted: dict[str, Settings] = {p.settings.to_query(): p.settings for p in menu}
    trainings = list(wanted.values())
    total = steps_to_record(trainings)
    with ProgressReporter("recording the lesson", total, enabled=progress) as reporter:
        recordings = record(trainings, reporter.advance)
    page = lesson_page(menu, recordings).encode()
    if len(page) > LARGEST:
        raise InputError(
            f"a lesson has at most {LARGEST / 1e6:.0f} MB, and this one would have "
            f"{len(page) / 1e6:.1f}; record fewer settings, or fewer clusters and neurons."
        )
    write_atomically(path, page)
    return len(page)


def lesson_page(menu: Sequence[Preset], recordings: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of the playground with its style, its scripts and the recordings inside."""
    static = files("featavg.apps.play").joinpath("static")
    text = {
        file.name: file.read_text(encoding="utf-8")
        for file in static.iterdir()
        if file.name.endswith((".html", ".css", ".js", ".svg"))
    }
    content = {"about": about(menu) | {"points": PLANES}, "recordings": recordings}
    compact = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    packed = base64.b64encode(gzip.compress(compact, 9, mtime=0)).decode()
    modules = {
        name.removesuffix(".js"): code for name, code in text.items() if name.endswith(".js")
    }
    script, style = bundle(modules, "app"), text["style.css"]
    policy = content_policy(style, script)
    replacements = {
        '<meta charset="utf-8">': '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<link rel="stylesheet" href="style.css">': f"<style>{style}</style>",
        'href="icon.svg"': f'href="data:image/svg+xml,{quote(text["icon.svg"])}"',
        '<script type="module" src="app.js"></script>\n': "",
        "<title>featavg playground</title>": "<title>Feature averaging: a lesson</title>",
        "</body>": f'<script type="application/gzip" id="lesson">{packed}</script>\n'
        f"<script>{script}</script>\n</body>",
    }
    page = text["index.html"]
    for old, new in replacements.items():
        if page.count(old) != 1:
            raise ValueError(f"index.html must have {old!r} once.")
        page = page.replace(old, new)
    return page


def bundle(modules: Mapping[str, str], entry: str) -> str:
    r"""Return one script of the JavaScript modules that `entry` needs, each in its own scope.

    A page that is opened from the disk cannot load modules.

    Examples
    --------
    >>> modules = {"a": "export const one = 1;", "b": 'import { one } from "./a.js";\nf(one);'}
    >>> print(bundle(modules, "b"))
    "use strict";
    const a_js = (() => {
    const one = 1;
    return {one};
    })();
    const b_js = (() => {
    const { one } = a_js;
    f(one);
    return {};
    })();
    """
    done: dict[str, str] = {}

    def add(name: str) -> None:
        code = modules[name]
        for _, needed in _IMPORT.findall(code):
            if needed not in done:
                add(needed)
        exported = ", ".join(_EXPORT.findall(code))
        body = _EXPORT.sub("", _IMPORT.sub(r"const {\1} = \2_js;\n", code))
        if re.search(r"^(import|export)\b", body, re.MULTILINE) or "</script" in body:
            raise ValueError(f"{name}.js has an import or export that cannot be bundled.")
        done[name] = f"const {name}_js = (() => {{\n{body}\nreturn {{{exported}}};\n}})();"

    add(entry)
    return "\n".join(['"use strict";', *done.values()])
