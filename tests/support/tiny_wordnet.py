"""A tiny WordNet in the format of the published one, and an encoder that a person can check.

Every category has six nouns below two hypernyms; its glosses share words, so that the encoder tells
categories apart.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from featavg.datasets.catalogue import (
    TEXTS,
    WORDNET,
    DebianPackage,
    Layout,
    Selection,
    TextDataset,
)
from featavg.datasets.wordnet import canonical_form
from support import FILES

LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
# a line as it is published
ENTITY = (
    "00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 ~ 00002137 n 0000 ~ 04424418 n 0000 | that "
    "which is perceived or known or inferred to have its own distinct existence (living or "
    "nonliving)  \n"
)


def line(
    offset: int,
    category: str,
    words: list[str],
    pointers: list[tuple[str, int]],
    gloss: str,
) -> str:
    """Return a line of ``data.noun``."""
    named = " ".join(f"{word} 0" for word in words)
    pointing = "".join(f" {sign} {target:08d} n 0000" for sign, target in pointers)
    number = WORDNET.categories.index(category) + 3
    return (
        f"{offset:08d} {number:02d} n {len(words):02x} {named} {len(pointers):03d}{pointing} "
        f"| {gloss}  \n"
    )


def content(per_hypernym: int = 3) -> bytes:
    """Return a file with two hypernyms in each category, and nouns below them."""
    lines = [LICENCE]
    for c, category in enumerate(WORDNET.categories):
        root = 10_000 * (c + 1)
        lines.append(line(root, category, [f"{category}_root"], [], f"{category} as such"))
        for h, kind in enumerate(("left", "right")):
            above = root + 1000 * (h + 1)
            word = f"{kind}_{category}"
            gloss = f'{category} {kind}; "an example"'
            lines.append(line(above, category, [word], [("@", root)], gloss))
            for i in range(per_hypernym):
                gloss = f"{category} {kind} number{i}"
                lines.append(line(above + i + 1, category, [f"n{i}"], [("@", above)], gloss))
    return "".join(lines).encode()


def declaration(value: bytes, selection: Selection, debian: Path | None = None) -> TextDataset:
    """Return the declaration of a tiny file; `debian` is where its package installs it."""
    original = WORDNET.layouts[0].files[0]
    file = replace(original, size=len(value), checksum=hashlib.sha256(value).hexdigest())
    tiny = replace(
        WORDNET,
        selection=selection,
        layouts=(Layout((file,), "wordnet"),),
        package=DebianPackage("wordnet-base", debian or FILES / "missing"),
    )
    canonical = canonical_form(tiny, value, "tests")
    return replace(
        tiny,
        texts=canonical.count(b"\n"),
        size=len(canonical),
        sha256=hashlib.sha256(canonical).hexdigest(),
    )


def declare(monkeypatch, value=None, selection=None, debian=None) -> TextDataset:
    """Replace WordNet by a tiny one."""
    selection = selection or Selection(per_category=9, depth=1, least=4, least_labelled=4)
    dataset = declaration(content() if value is None else value, selection, debian)
    monkeypatch.setitem(TEXTS, "wordnet", dataset)
    return dataset


class HashedWords:
    """Add a row of ±1 for each word, which follows from its SHA-256."""

    name, weights_sha256, size = "hashed words", "none", 40

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts):
        self.calls += 1
        return np.array([sum(self.row(word) for word in text.split()) for text in texts])

    def row(self, word):
        bits = np.unpackbits(np.frombuffer(hashlib.sha256(word.encode()).digest(), np.uint8))
        return 2.0 * bits[: self.size] - 1
