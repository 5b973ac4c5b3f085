"""Hashes of the code that results come from.

A saved result counts as long as the code that computed it is the same. That code is the import
closure of the modules it is defined in: every module of featavg, and of the experiment's own
package or folder, that they import, directly or not, also inside functions. Comments, docstrings
and formatting do not count, and neither does how results are drawn.
"""

from __future__ import annotations

import ast
import hashlib
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]
_DRAWING = "featavg.drawing"  # draws what was measured, and changes none of it


def package_hash() -> str:
    """Return a hash of the source of the whole package, as it is written."""
    digest = hashlib.sha256()
    for path in sorted([*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.pyi")]):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def code_hash(*definitions: Callable[..., Any]) -> str:
    """Return a hash of the import closure of the modules that define functions or classes.

    Code that is in no file, such as that of an interactive session, has a random hash,
    because a change of it cannot be noticed.
    """
    return module_hash(*{module_of(definition) for definition in definitions})


def module_hash(*names: str) -> str:
    """Return a hash of the import closure of modules that are imported already."""
    places = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    files = {name: Path(place) for name, place in places.items() if place is not None}
    if len(files) < len(names) or not all(path.is_file() for path in files.values()):
        return secrets.token_hex(6)
    digest = hashlib.sha256()
    for name, path in sorted(_closure(files).items()):
        digest.update(f"{name} {_parsed(path).digest};".encode())
    return digest.hexdigest()[:12]


def module_of(definition: Any) -> str:
    """Return the name of the module that defines a function, a class or an object."""
    while isinstance(definition, partial):
        definition = definition.func
    if not hasattr(definition, "__qualname__"):  # an object that can be called
        definition = type(definition)
    return str(definition.__module__)


def _closure(files: dict[str, Path]) -> dict[str, Path]:
    """Return the files of modules and of all that they import, by the names of the modules."""
    roots = {"featavg": _PACKAGE.parent}
    for name, path in files.items():
        depth = name.count(".") + (path.name == "__init__.py")
        roots.setdefault(name.partition(".")[0], path.parents[depth])
    alone = [path.parent for name, path in files.items() if "." not in name]
    file_of = cache(_file_of)  # most modules are imported by many others
    found: dict[str, Path] = {}
    waiting = dict(files)
    while waiting:
        name, path = waiting.popitem()
        found[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for candidates in _parsed(path).imports(package):
            for imported in candidates:
                if imported.startswith(_DRAWING):
                    break
                top = imported.partition(".")[0]
                folders = [roots[top]] if top in roots else alone
                places = filter(None, (file_of(imported, folder) for folder in folders))
                if place := next(places, None):
                    if imported not in found:
                        waiting[imported] = place
                    break
    return found


def _file_of(name: str, folder: Path) -> Path | None:
    """Return the file of a module below a folder, or None if it is not there."""
    path = folder.joinpath(*name.split("."))
    for place in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if place.is_file():
            return place
    return None


@dataclass(frozen=True)
class _Parsed:
    """The hash of a module's code, and its import statements: package, level and name of each."""

    digest: str
    statements: tuple[tuple[str, int, str], ...]

    def imports(self, package: str) -> Iterator[list[str]]:
        """Yield, for each statement, what it may import: a submodule, or else the module."""
        for module, level, name in self.statements:
            if level:
                parents = package.split(".")
                module = ".".join([*parents[: len(parents) - level + 1], module]).strip(".")
            yield [f"{module}.{name}", module] if name else [module]


def _parsed(path: Path) -> _Parsed:
    """Parse a module; one that imports names on use has a type stub that lists them."""
    stub = path.with_suffix(".pyi")
    parsed = _parsed_file(path)
    if not stub.is_file():
        return parsed
    return _Parsed(parsed.digest, parsed.statements + _parsed_file(stub).statements)


def _parsed_file(path: Path) -> _Parsed:
    status = path.stat()
    return _parse(path, status.st_mtime_ns, status.st_size)


@cache
def _parse(path: Path, *_: int) -> _Parsed:
    """Parse a file; what follows the path is its time and size, so that changes are noticed."""
    tree = ast.parse(path.read_bytes())
    statements: list[tuple[str, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            statements += [(name.name, 0, "") for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            statements += [(node.module or "", node.level, name.name) for name in node.names]
    code = ast.dump(_WithoutDocstrings().visit(tree))
    return _Parsed(hashlib.sha256(code.encode()).hexdigest(), tuple(statements))


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else node
