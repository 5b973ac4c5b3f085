"""Code blocks of Markdown pages, for the tests that execute them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from typing import Any

# programs that pages may name and that are not ours to check
OTHERS = {
    *("apt-get", "cd", "curl", "dask", "git", "hf", "pip", "python", "sbatch", "source"),
    "xdg-open",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which the text begins."""

    language: str
    text: str
    line: int
    follows: bool  # directly after another block, with nothing but an empty line in between


def fenced(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found, end = [], 0
    for match in re.finditer(r"^```(\S*)[^\n]*\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE):
        line = page[: match.start(2)].count("\n") + 1
        between = page[end : match.start()]
        found.append(Block(match[1], match[2], line, bool(end) and not between.strip()))
        end = match.end()
    return found


def blocks(page: str, language: str) -> list[str]:
    """Return the text of the blocks of one language."""
    return [block.text for block in fenced(page) if block.language == language]


def execute(page: str, name: str) -> list[tuple[int, str, str]]:
    """Run the Python blocks of a page in one namespace.

    Returns what was printed and what the page says is printed, with the line, for each Python block
    that a text block follows directly.
    """
    namespace: dict[str, Any] = {"__name__": "page"}
    compared, printed = [], ""
    for block in fenced(page):
        if block.language == "python":
            output = io.StringIO()
            code = compile("\n" * (block.line - 1) + block.text, name, "exec", dont_inherit=True)
            with contextlib.redirect_stdout(output):
                exec(code, namespace)  # noqa: S102
            printed = output.getvalue()
        elif block.language == "text" and block.follows:
            compared.append((block.line, printed, block.text))
    return compared


def commands(page: str) -> list[list[str]]:
    """Return the commands of the console blocks, each as its words; && and \\ are understood."""
    found = []
    for text in blocks(page, "console"):
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                for part in line[2:].split("&&"):
                    words = shlex.split(part.removesuffix("&"), comments=True)
                    found.append(words)
    return [words for words in found if words]
