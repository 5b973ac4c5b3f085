"""Find experiments: those of installed packages, and those in files.

A package declares its experiments as an entry point of the group ``featavg.experiments``, which
names an `Experiment`, or a list of them or a dict with them as values. featavg declares its own in
the same way. A file has an ``EXPERIMENT``, or several in ``EXPERIMENTS``.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from featavg.errors import InputError, did_you_mean, shortened
from featavg.lab.experiment import Experiment
from featavg.lab.source import module_of

_GROUP = "featavg.experiments"
_OWN = "builtin"
_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<id>[^:/]+))?")


def experiments() -> dict[str, Experiment]:
    """Return every experiment of installed packages by its id, those of featavg first.

    Examples
    --------
    >>> from featavg.lab import registry
    >>> registry.experiments()["averaging"].paper
    'Section 6.1'
    """
    return dict(_loaded()[0])


def broken_plugins() -> tuple[str, ...]:
    """Return a sentence for each entry point whose experiments cannot be used."""
    return _loaded()[1]


def find(address: Any, *, name: str = "experiment", folder: Path | None = None) -> Experiment:
    """Return an experiment.

    Parameters
    ----------
    address : str
        Its id, or the path of a file, such as ``./mine.py`` or ``./mine.py:ID``.
    name : str
        The name of the argument, for errors.
    folder : path, optional
        The folder that a relative path starts from; the current one by default.
    """
    if isinstance(address, str) and (file := _FILE.fullmatch(address)):
        return _in_file((folder or Path()) / Path(file["path"]).expanduser(), file["id"])
    known, broken = _loaded()
    if not isinstance(address, str) or address not in known:
        because = "".join(f" ({sentence.rstrip('.')})" for sentence in broken)
        raise InputError(
            f"{name} must be one of those that 'featavg list' shows, or a file such as ./mine.py; "
            f"got {address!r}{did_you_mean(address, known)}{because}."
        )
    return known[address]


def names_file(address: Any) -> bool:
    """Return whether an address is that of a file, which `find` would import."""
    return isinstance(address, str) and _FILE.fullmatch(address) is not None


def address(experiment: Experiment) -> str:
    """Return the address of an experiment: its id, or its file and its id."""
    module = sys.modules.get(module_of(experiment.measure))
    file = getattr(module, "__file__", None)
    installed = _loaded()[0].get(experiment.id) is experiment
    return experiment.id if installed or file is None else f"{file}:{experiment.id}"


@cache
def _loaded() -> tuple[Mapping[str, Experiment], tuple[str, ...]]:
    """Load all entry points; return the experiments, and what is wrong with the others."""
    found: dict[str, Experiment] = {}
    broken = []
    points = sorted(entry_points(group=_GROUP), key=lambda point: (point.name != _OWN, point.name))
    for point in points:
        try:
            for experiment in _experiments(point.load()):
                if experiment.id in found:
                    raise InputError(f"there is another experiment {experiment.id!r}.")
                found[experiment.id] = experiment
        except Exception as error:
            broken.append(f"plugin {point.name!r} ({point.value}) cannot be used: {_told(error)}.")
    return found, tuple(broken)


def _experiments(value: Any) -> list[Experiment]:
    """Return one experiment, or several in a list or as the values of a dict."""
    if isinstance(value, Experiment):
        return [value]
    several: list[Any] = []
    if isinstance(value, Iterable):
        several = list(value.values() if isinstance(value, Mapping) else value)
    if not several or not all(isinstance(one, Experiment) for one in several):
        raise InputError(
            f"experiments must be Experiment objects, one at least; got {shortened(value)}."
        )
    return several


def _in_file(path: Path, name: str | None) -> Experiment:
    module = _imported(path.resolve())
    value = getattr(module, "EXPERIMENTS", getattr(module, "EXPERIMENT", None))
    if value is None:
        raise InputError(f"{path} must define EXPERIMENT or EXPERIMENTS, and has neither.")
    try:
        known = {experiment.id: experiment for experiment in _experiments(value)}
        _refuse_taken(known)
    except (InputError, TypeError) as error:
        raise InputError(f"{path} cannot be used: {_told(error)}.") from None
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name not in known:
        raise InputError(f"{path} must be followed by one of {', '.join(f':{i}' for i in known)}.")
    return known[name]


def _refuse_taken(found: Mapping[str, Experiment]) -> None:
    """Refuse another experiment by the id of one of featavg, whose folder it would write into."""
    taken = [point for point in entry_points(group=_GROUP) if point.name == _OWN]
    own = {one.id: one for point in taken for one in _experiments(point.load())}
    for name, experiment in found.items():
        if own.get(name, experiment) is not experiment:
            raise InputError(
                f"id must be another than that of an experiment of featavg; got {name!r}."
            )


def _imported(path: Path) -> Any:
    """Import a file under its own name, so that worker processes find it too."""
    if not path.is_file():
        raise InputError(f"there is no file {path}.")
    if not path.stem.isidentifier():
        raise InputError(f"{path.name} must have a name that Python can import, such as mine.py.")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # as Python does; spawned processes inherit it
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(path.stem)
    except (Exception, SystemExit) as error:
        raise InputError(f"{path} cannot be imported: {_told(error, path)}.") from None
    if Path(module.__file__ or "").resolve() != path:
        raise InputError(
            f"{path.name} must have another name because {path.stem!r} is another module."
        )
    return module


def _told(error: BaseException, path: Path | None = None) -> str:
    """Return an error as part of a sentence, with the line where it happened."""
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, InputError):
        return text
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [line for name, line in frames if path is not None and Path(name) == path]
    if isinstance(error, SyntaxError):
        text, own = error.msg, [error.lineno]
    where = f" in line {own[-1]}" if own else ""
    return f"{type(error).__name__}{where}: {text}"
