"""WordNet's file of nouns: its glosses, their categories, and hypernyms as finer labels.

A line is a set of synonyms: its offset in the file, the number of its category, its words, pointers
to other sets (``@`` to a hypernym, ``@i`` to the class of which it is an instance) and the gloss.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from featavg.datasets.catalogue import Selection, TextDataset
from featavg.errors import InputError

_FIRST_CATEGORY = 3  # of nouns
_EXAMPLE = '; "'  # where examples begin in a gloss
_REST = "other"


@dataclass(frozen=True)
class Noun:
    """A set of synonyms.

    Attributes
    ----------
    category : str
        The lexicographers' category.
    word : str
        Its first word.
    hypernym : str or None
        The offset of the first set of synonyms that is more general.
    is_instance : bool
        Whether it is a name, such as that of a town, and not a class of things.
    definition : str
        The gloss without its examples.
    """

    category: str
    word: str
    hypernym: str | None
    is_instance: bool
    definition: str


def canonical_form(dataset: TextDataset, content: bytes, where: str) -> bytes:
    """Return the lines of the data set, given the content of ``data.noun``.

    Paper: none, an extension. Names (instances) are left out, and so is a definition that was taken
    already. The order is that of the categories, then that of `Selection.seed`.
    """
    nouns = parse_nouns(content, dataset.categories, where)
    chosen = _chosen(nouns, dataset.categories, dataset.selection)
    labels = _labels(nouns, chosen, dataset.selection)
    lines = (
        f"{nouns[offset].category}\t{label}\t{nouns[offset].definition}\n"
        for offset, label in zip(chosen, labels, strict=True)
    )
    return "".join(lines).encode()


def parse_nouns(content: bytes, categories: Sequence[str], where: str) -> dict[str, Noun]:
    """Return the nouns by offset; lines that begin with two spaces are the licence."""
    nouns = {}
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            try:
                offset, noun = _noun(line.decode(), categories)
            except (ValueError, IndexError):
                raise InputError(
                    f"line {number} of {where} must be a noun in the format of WordNet."
                ) from None
            nouns[offset] = noun
    return nouns


def _noun(line: str, categories: Sequence[str]) -> tuple[str, Noun]:
    before, bar, gloss = line.partition(" | ")
    fields = before.split()
    offset, category, kind = fields[0], int(fields[1]) - _FIRST_CATEGORY, fields[2]
    definition = " ".join(gloss.split(_EXAMPLE)[0].split())
    if not (bar and definition and offset.isdigit() and kind == "n" and category >= 0):
        raise ValueError(line)
    pointers = fields[5 + 2 * int(fields[3], 16) :]
    kinds, targets = pointers[::4], pointers[1::4]
    if len(kinds) != int(fields[4 + 2 * int(fields[3], 16)]) or len(targets) != len(kinds):
        raise ValueError(line)
    above = [target for sign, target in zip(kinds, targets, strict=True) if sign == "@"]
    return offset, Noun(
        category=categories[category],
        word=fields[4].replace("_", " "),
        hypernym=above[0] if above else None,
        is_instance=not above and "@i" in kinds,
        definition=definition,
    )


def _chosen(
    nouns: Mapping[str, Noun], categories: Sequence[str], selection: Selection
) -> list[str]:
    """Return the offsets of the nouns that are taken."""
    in_order = sorted(
        (offset for offset, noun in nouns.items() if not noun.is_instance),
        key=lambda offset: hashlib.sha256(f"{selection.seed} {offset}".encode()).digest(),
    )
    members: dict[str, list[str]] = {category: [] for category in categories}
    taken: set[str] = set()
    for offset in in_order:
        noun = nouns[offset]
        of_category = members[noun.category]
        if len(of_category) < selection.per_category and noun.definition not in taken:
            taken.add(noun.definition)
            of_category.append(offset)
    return [offset for category in categories for offset in members[category]]


def _labels(nouns: Mapping[str, Noun], chosen: Sequence[str], selection: Selection) -> list[str]:
    """Return the finer label of each noun: the deepest hypernym that enough of them lie below."""
    upper = {offset: _uppermost(nouns, offset)[: selection.depth + 1] for offset in chosen}
    below = Counter(hypernym for offset in chosen for hypernym in upper[offset])
    deepest = [
        next((one for one in reversed(upper[offset]) if below[one] >= selection.least), None)
        for offset in chosen
    ]
    labelled = Counter(deepest)
    labels = []
    for offset, hypernym in zip(chosen, deepest, strict=True):
        few = hypernym is None or labelled[hypernym] < selection.least_labelled
        word = _REST if hypernym is None or few else nouns[hypernym].word
        labels.append(f"{nouns[offset].category}: {word}")
    return labels


def _uppermost(nouns: Mapping[str, Noun], offset: str) -> list[str]:
    """Return a noun and its hypernyms within its category, the uppermost first."""
    path = [offset]
    while True:
        above = nouns[path[-1]].hypernym
        if above is None or above in path or above not in nouns:
            break
        if nouns[above].category != nouns[offset].category:
            break
        path.append(above)
    return path[::-1]
