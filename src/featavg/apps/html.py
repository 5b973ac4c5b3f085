"""Pages as single HTML files: what the report and the audit share."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

_SHARED = "featavg.apps"


def _asset(package: str, name: str) -> str:
    return (files(package) / "assets" / name).read_text(encoding="utf-8")


def render(
    package: str,
    template: str,
    *,
    scripts: Sequence[str] = (),
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """Return a page that needs no other file and loads nothing.

    The template, from the assets of `package`, extends ``base.html``. It places the assets of
    JavaScript `scripts` as ``script``, and shows `values`, all text in which is escaped.
    """
    environment = _environment(package, tuple((filters or {}).items()))
    style = _asset(_SHARED, "page.css")
    code = "\n".join(_asset(package, name) for name in scripts)
    script = f'"use strict";\n(() => {{\n{code}\n}})();' if code else ""
    return environment.get_template(template).render(
        policy=content_policy(style, script),
        style=Markup(style),  # noqa: S704  ours, as are the scripts
        script=Markup(script),  # noqa: S704
        **values,
    )


@lru_cache(maxsize=8)
def _environment(
    package: str, filters: tuple[tuple[str, Callable[..., Any]], ...]
) -> jinja2.Environment:
    """Return what compiles the templates of a package, each of them once."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p, "assets") for p in (package, _SHARED)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= dict(filters)
    return environment


def content_policy(style: str, script: str) -> str:
    """Return the content security policy: our style, our script, pictures inside the page."""
    scripts = f"; script-src {_hash(script)}" if script else ""
    allowed = f"style-src {_hash(style)}{scripts}; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
