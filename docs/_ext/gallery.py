"""Notebooks and pictures of examples as pages of the documentation.

The page ``notebooks/NAME`` is the notebook ``notebooks/NAME.py`` of the repository, executed. On
other pages, a block ``{plot-example} NAME`` becomes the example in the docstring of that function
of `featavg.plot`, with its picture, and a block ``{notebook-picture} NAME NUMBER`` that picture
of a notebook.
"""

from __future__ import annotations

import doctest
import re
from functools import cache
from pathlib import Path

import matplotlib as mpl
from notebook_pages import as_markdown, drawn
from sphinx.application import Sphinx

import featavg as fa

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```\{(plot-example|notebook-picture)\} (\w+)(?: (\d+))?\n```")


def example(name: str) -> tuple[str, str, bytes]:
    """Run the example of a function of `featavg.plot`; return it, and its picture and its title."""
    mpl.use("agg")
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(fa.plot, name), name, globs={})
    failed = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed
    pictures = list(drawn())
    if failed or len(pictures) != 1:
        raise ValueError(f"the example of {name} must pass and draw one figure.")
    ((title, content),) = pictures
    return "".join(step.source for step in test.examples).rstrip(), title, content


@cache
def _page(name: str, folder: Path) -> str:
    """Run a notebook, once for all pages, and return it as Markdown."""
    return as_markdown(ROOT / "notebooks" / f"{name}.py", folder, "/notebooks/generated")


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the text of a page by that of its notebook, and blocks by what they stand for."""
    folder = Path(app.srcdir) / "notebooks" / "generated"
    kind, _, name = page.partition("/")
    if kind == "notebooks":
        app.env.note_dependency(str(ROOT / "notebooks" / f"{name}.py"), docname=page)
        source[0] = _page(name, folder)
        return

    def replaced(block: re.Match[str]) -> str:
        what, name, number = block.groups()
        if what == "notebook-picture":
            _page(name, folder)
            picture = f"/notebooks/generated/{name}-{number}.png"
            return f"[![A picture of this notebook]({picture})](notebooks/{name}.md)"
        code, title, content = example(name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"plot-{name}.png").write_bytes(content)
        picture = f"![{title}](/notebooks/generated/plot-{name}.png)"
        return f"{picture}\n\n```python\n{code}\n```"

    source[0] = _BLOCK.sub(replaced, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
