"""Figures as a page can hold them: inside it, as data."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from featavg.drawing.pictured import data_address
from featavg.files import DamagedError, read_bytes

_MOST_BYTES = 6_000_000
_LARGEST_SIDE = 20_000
_PNG = b"\x89PNG\r\n\x1a\n"
_SVG = re.compile(rb"<svg\b[^>]{0,2000}>")
_SIDES = tuple(re.compile(rb'\s%s="(\d{1,6}(?:\.\d{1,9})?)pt"' % s) for s in (b"width", b"height"))


@dataclass(frozen=True)
class Image:
    """A picture in a data address, with its size in pixels so that nothing jumps."""

    source: str
    width: int
    height: int


def smallest_image(folder: Path, *, without: Collection[str] = ()) -> Image | None:
    """Return the figure of a run as SVG or PNG, whichever is smaller, or None if there is none.

    Files in `without` are left out. It is for an ``<img>``, in which a browser runs no scripts and
    loads nothing.
    """
    found = []
    for name, reader in (("figure.svg", _svg), ("figure.png", _png)):
        if name in without:
            continue
        try:
            content = read_bytes(folder / name, most=_MOST_BYTES)
            found.append((len(content), reader(content)))
        except DamagedError:  # the other one may do
            continue
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _png(content: bytes) -> Image:
    if not content.startswith(_PNG) or content[12:16] != b"IHDR" or len(content) < 24:
        raise DamagedError("figure.png is not a PNG file")
    return _image("image/png", content, *struct.unpack(">II", content[16:24]))


def _svg(content: bytes) -> Image:
    root = _SVG.search(content[:4000])
    sides = [] if root is None else [side.search(root.group()) for side in _SIDES]
    sizes = [round(float(side.group(1))) for side in sides if side is not None]
    # an entity can stand for a billion others
    if len(sizes) != len(_SIDES) or b"<!ENTITY" in content:
        raise DamagedError("figure.svg is not a figure of featavg")
    return _image("image/svg+xml", content, *sizes)


def _image(kind: str, content: bytes, width: int, height: int) -> Image:
    if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE):
        raise DamagedError("a figure must have a size that can be shown")
    return Image(data_address(kind, content), width, height)
