"""Data sets of texts: short texts, each with a category and a finer label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featavg.arrays import IntArray, frozen
from featavg.datasets.catalogue import TextDataset


@dataclass(frozen=True, eq=False, repr=False)
class TextData:
    """Short texts, each with a category and a finer label below it.

    Attributes
    ----------
    name : str
        The name of the data set.
    texts : tuple of str
        The texts.
    categories, labels : array of int64, shape (texts,)
        The category and the finer label of each text; read-only.
    category_names, label_names : tuple of str
        The names of both; a finer label begins with its category.
    licence : str
        The licence of the texts.
    source : str
        The source it was read from.
    sha256 : str
        The checksum of all texts and labels, which does not depend on the source.
    """

    name: str
    texts: tuple[str, ...]
    categories: IntArray
    labels: IntArray
    category_names: tuple[str, ...]
    label_names: tuple[str, ...]
    licence: str
    source: str
    sha256: str

    def __repr__(self) -> str:
        return (
            f"TextData({self.name}: {len(self.texts):,} texts, {len(self.category_names)} "
            f"categories, {len(self.label_names)} finer labels)"
        )


def text_data(dataset: TextDataset, canonical: bytes, source: str) -> TextData:
    """Return a data set of texts, given its canonical form, which was checked."""
    rows = [line.split("\t") for line in canonical.decode().split("\n")[:-1]]
    labels = tuple(dict.fromkeys(label for _, label, _ in rows))
    position = {label: i for i, label in enumerate(labels)}
    return TextData(
        name=dataset.name,
        texts=tuple(text for _, _, text in rows),
        categories=frozen(np.array([dataset.categories.index(row[0]) for row in rows])),
        labels=frozen(np.array([position[row[1]] for row in rows])),
        category_names=dataset.categories,
        label_names=labels,
        licence=dataset.licence,
        source=source,
        sha256=dataset.sha256,
    )
