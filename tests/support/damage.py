"""Ways to damage saved files: flipped bits, missing files, archives that unpack to gigabytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from featavg.seals import seal


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def flipped(name: str, byte: int) -> Callable[[Path], None]:
    """Return what flips a bit of a file in a folder without a manifest."""

    def damage(folder: Path) -> None:
        (folder / "manifest.json").unlink()
        flip(folder / name, 8 * byte)

    return damage


def flipped_with_manifest(name: str, byte: int) -> Callable[[Path], None]:
    """Return what flips a bit of a file in a folder."""
    return lambda folder: flip(folder / name, 8 * byte)


def removed(name: str) -> Callable[[Path], None]:
    """Return what removes a file from a folder."""
    return lambda folder: (folder / name).unlink()


def bomb(path: Path, megabytes: int, name: str = "numbers", **others: object) -> None:
    """Write a sealed file with an array of zeros that is a thousand times larger than the file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        arrays = {name: np.zeros(megabytes * 125_000), **others}
        for member, value in arrays.items():
            with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    seal(buffer)
    path.write_bytes(buffer.getvalue())
