"""Formulas without MathJax: the MathML of the browser, or the TeX source where that fails."""

from __future__ import annotations

import html
from typing import Any, cast

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def _formula(text: str, *, block: bool) -> str:
    """Return a formula as HTML."""
    try:
        return cast(str, tex2mathml(text, as_block=block))
    except MathError:
        tag = "pre" if block else "code"
        return f'<{tag} class="tex">{html.escape(text)}</{tag}>'


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_formula(node.astext(), block=False))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    name = f' id="{node["ids"][0]}"' if node["ids"] else ""
    self.body.append(f'<div class="math"{name}>{_formula(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer."""
    app.add_html_math_renderer("plain", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
