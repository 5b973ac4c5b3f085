"""Notebooks that are plain Python files: their cells, what these print and draw, as Markdown.

The files have the percent format, which Jupyter (with Jupytext), VS Code, PyCharm and Spyder open
as notebooks: a line ``# %%`` begins a cell of code, ``# %% [markdown]`` one of text.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

_TEXT = "# %% [markdown]"


@dataclass(frozen=True)
class Cell:
    """A cell: its source without the marker, and the line of the file that it begins in."""

    source: str
    line: int
    is_text: bool = False


@dataclass(frozen=True)
class Output:
    """What a cell of code has printed, its value as text or HTML, and its figures as PNG files."""

    printed: str = ""
    html: str = ""
    figures: tuple[tuple[str, bytes], ...] = ()


def cells(text: str) -> list[Cell]:
    """Return the cells of a notebook."""
    found: list[Cell] = []
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("# %%")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[start + 1 : end]
        is_text = lines[start] == _TEXT
        if is_text:
            body = [line.removeprefix("#").removeprefix(" ") for line in body]
        if source := "\n".join(body).strip("\n"):
            first = start + 2 + next(i for i, line in enumerate(body) if line)
            found.append(Cell(source, first, is_text))
    return found


def execute(notebook: Path) -> Iterator[tuple[Cell, Output]]:
    """Run a notebook, and yield each cell with what it printed and drew."""
    mpl.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(notebook.read_text(encoding="utf-8")):
        if cell.is_text:
            yield cell, Output()
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = _run("\n" * (cell.line - 1) + cell.source, str(notebook), names)
        text, html = printed.getvalue(), ""
        if callable(getattr(value, "_repr_html_", None)):
            html = value._repr_html_()
        elif value is not None and not type(value).__module__.startswith("matplotlib"):
            text += f"{value!r}\n"
        yield cell, Output(text, html, tuple(drawn()))


def _run(source: str, name: str, names: dict[str, Any]) -> Any:
    """Execute statements, and return the value of the last one if it is an expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)  # noqa: S102  our own notebooks
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), names)  # noqa: S307


def drawn() -> Iterator[tuple[str, bytes]]:
    """Yield the title and the PNG file of each open figure of pyplot, and close all of them."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        yield "; ".join(titles), buffer.getvalue()
    pyplot.close("all")


def as_markdown(notebook: Path, folder: Path, address: str) -> str:
    """Run a notebook and return it as a page; its pictures are written into a folder.

    `address` is that of the folder, as the page refers to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts, count = [], 0
    for cell, output in execute(notebook):
        if cell.is_text:
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if output.printed:
            parts.append(f"```text\n{output.printed.rstrip()}\n```")
        if output.html:
            parts.append(f"```{{raw}} html\n{output.html}\n```")
        for title, content in output.figures:
            count += 1
            name = f"{notebook.stem}-{count}.png"
            (folder / name).write_bytes(content)
            parts.append(f"![{title}]({address}/{name})")
    return "\n\n".join(parts) + "\n"
