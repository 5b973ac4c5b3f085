"""The files that a command writes to a folder which may hold files of the user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from featavg.errors import InputError
from featavg.lab.run_folder import check_writable

_READ = 4096  # bytes from the beginning of a file, by which it is recognised


def folder_beside(file: Path, command: str, name: str) -> Path:
    """Return the folder beside a file for what a command computes from it.

    A folder in the place of the file, which may have no name (`.` or `/`), is refused; `name` is
    what the command calls the file.
    """
    if file.is_dir():
        raise InputError(f"{name} must be a file; {file} is a folder.")
    return file.with_name(f"{file.stem}-{command}")


def check_outputs(out: Path, beginnings: Mapping[str, str], inputs: Sequence[Path]) -> None:
    """Refuse a folder in which a command would overwrite files that it has not written.

    Parameters
    ----------
    out : path
        The folder.
    beginnings : dict of str
        The name of each file that the command writes or removes, and a regular expression that
        its beginning matches if the command has written it.
    inputs : sequence of path
        The files that the command reads.
    """
    check_writable(out)
    for name, beginning in beginnings.items():
        path = out / name
        if any(path.exists() and file.exists() and path.samefile(file) for file in inputs):
            raise InputError(
                f"out must be another folder, because {name} in it would be overwritten and is "
                f"read; got {str(out)!r}."
            )
        if (path.exists() or path.is_symlink()) and not _matches(path, beginning):
            raise InputError(
                f"out must be another folder, because {name} in it would be overwritten and was "
                f"not written by this command; got {str(out)!r}."
            )


def _matches(path: Path, beginning: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(_READ)
    return re.match(beginning, start.decode(errors="replace"), re.DOTALL) is not None
