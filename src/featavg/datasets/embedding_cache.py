"""Embeddings of images or texts, computed once and cached in chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from featavg.array_files import Expected
from featavg.array_store import ArrayStore
from featavg.arrays import FloatArray
from featavg.datasets.cache import cache_folder, explained_write_errors
from featavg.errors import InputError
from featavg.files import clear_leftovers
from featavg.progress import ProgressReporter

# Embeddings are cached in chunks: a run that was stopped resumes, and a run with more items reuses
# those of a run with fewer.
_CHUNK = 1000

Items = TypeVar("Items")
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Embedder(Generic[Items]):
    """What embeds items, which are an array or a sequence that can be sliced.

    Attributes
    ----------
    name, unit : str
        What it is, and what an item is in the singular, for messages.
    key : callable
        ``key(items)`` returns a hash of everything that their embeddings depend on.
    compute : callable
        ``compute(items, advance)`` returns a row for each; ``advance(n)`` reports progress.
    """

    name: str
    unit: str
    key: Callable[[Items], str]
    compute: Callable[[Items, Advance], FloatArray]

    def __call__(self, items: Any, *, cache: bool, progress: bool) -> FloatArray:
        """Return the embedding of each item, from the cache or computed."""
        folder = cache_folder("embeddings")
        store = ArrayStore(folder if cache else None)
        if cache:
            clear_leftovers(folder)
        parts = []
        label = f"{self.name}: {self.unit}s"
        with ProgressReporter(label, len(items), enabled=progress) as reporter:
            for start in range(0, len(items), _CHUNK):
                chunk = items[start : start + _CHUNK]
                parts.append(self._embedded(chunk, store, reporter.advance))
                reporter.show(start + len(chunk), label)
        return np.concatenate(parts)

    def _embedded(self, chunk: Any, store: ArrayStore, advance: Advance) -> FloatArray:
        """Return the embeddings of a chunk; only errors of its file are explained as such."""
        if store.path is None:
            return self._checked(self.compute(chunk, advance), chunk)
        key, expected = self.key(chunk), {"embeddings": Expected("f", (len(chunk), None))}
        with explained_write_errors(store.path):
            saved = store.find(key, expected)
        if saved is not None:
            return saved["embeddings"]
        embeddings = self._checked(self.compute(chunk, advance), chunk)
        with explained_write_errors(store.path):
            store.save(key, {"embeddings": embeddings})
        return embeddings

    def _checked(self, embeddings: FloatArray, items: Any) -> FloatArray:
        if embeddings.ndim != 2 or len(embeddings) != len(items):
            raise InputError(
                f"{self.name} must return one row of features for each {self.unit}; "
                f"got the shape {embeddings.shape} for {len(items)} {self.unit}s."
            )
        if not np.isfinite(embeddings).all():
            raise InputError(f"{self.name} must return finite features; got NaN or infinity.")
        return embeddings
