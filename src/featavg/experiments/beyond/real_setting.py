"""Real hierarchies: glosses of WordNet and images of CIFAR-10 in clusters, and their two sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from featavg import datasets
from featavg.arrays import IntArray
from featavg.errors import InputError
from featavg.experiments import embedded
from featavg.experiments.beyond.grouped import whole_numbers
from featavg.experiments.beyond.real_points import AS_MEASURED, Change, RealPoints
from featavg.lab.parameters import CheckedParameters, parameter
from featavg.progress import wanted

WORDNET = "wordnet"
CATEGORIES = datasets.TEXTS[WORDNET].categories
CONCRETE = (
    *("Tops", "animal", "artifact", "body", "food", "location", "object", "person"),
    *("phenomenon", "plant", "process", "substance"),
)
"""The categories most of whose nouns lie below "physical entity" in the tree of hypernyms."""
ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
_FIRST_RANDOM_SIDES = 1


@dataclass(frozen=True)
class Case:
    """What is trained on: sides, a change of the points, and how long.

    Attributes
    ----------
    name, title : str
        For quantities and for readers.
    sides : int
        0 for the natural sides, i for the i-th random ones.
    change : Change
        What is changed of the points.
    time : float
        A factor of the usual training time.
    """

    name: str
    title: str
    sides: int = 0
    change: Change = AS_MEASURED
    time: float = 1.0


NATURAL = Case("natural", "as they are")
CHANGES = (
    Case("isotropic", "isotropic noise", change=Change(isotropic=True)),
    Case("orthogonal", "orthogonal means", change=Change(orthogonal=True)),
    Case("both", "orthogonal, isotropic", change=Change(orthogonal=True, isotropic=True)),
    Case("quiet", "noise as large as the means", change=Change(quiet=True)),
    Case("quiet_isotropic", "and isotropic", change=Change(isotropic=True, quiet=True)),
    Case("quiet_orthogonal", "and orthogonal means", change=Change(orthogonal=True, quiet=True)),
    Case("quiet_both", "and both: the law's assumptions", change=Change(True, True, True)),
    Case("whitened", "whitened", change=Change(whitened=True)),
    Case("short", "a tenth of the time", time=0.1),
    Case("long", "ten times the time", time=10.0),
)
"""Interventions, each on the natural sides."""


@dataclass(frozen=True, eq=False)
class RealData:
    """Points in clusters, and the same points in finer clusters where there are any.

    ``cluster_of[j]`` is the cluster that the finer cluster j lies in.
    """

    points: RealPoints
    finer: RealPoints | None = None
    cluster_of: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class RealSetting(CheckedParameters):
    """What the experiments on real hierarchies share."""

    groups: str = parameter("2, 4, 8, 16, 26", "numbers of label groups, with commas between them")
    changed_groups: str = parameter("2, 8, 26", "those that are tried with changed points")
    random_sides: int = parameter(3, "random sides beside the natural ones", least=0)
    time: float = parameter(30.72, "eta·t·p·|m|², the training time; the paper's by default")
    searched: int = parameter(
        10, "points of each training whose radius the general search computes as well"
    )
    seconds: float = parameter(0.5, "seconds of the general search for each of them")

    clusters: ClassVar[int]
    natural: ClassVar[tuple[int, ...]]
    titles: ClassVar[tuple[str, str]]
    """What the points and the natural sides are, in words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        groups = self.levels(NATURAL)
        if groups[-1] > self.clusters:
            raise InputError(
                f"groups must be at most {self.clusters}, the number of clusters; got {groups[-1]}."
            )
        if not set(self.levels(CHANGES[0])) <= set(groups):
            raise InputError(
                f"changed_groups must be some of the groups {self.groups}; got "
                f"{self.changed_groups}."
            )

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The natural sides, the random ones, and the interventions."""
        random = (
            Case(f"random{i}", f"random sides {i}", sides=i)
            for i in range(1, self.random_sides + 1)
        )
        return (NATURAL, *random, *CHANGES)

    def levels(self, case: Case) -> list[int]:
        """Return the numbers of label groups of a case."""
        name = "changed_groups" if case in CHANGES else "groups"
        return whole_numbers(name, getattr(self, name), 2)

    def positive(self, case: Case) -> Sequence[int]:
        """Return the positive clusters of a case; random ones are half of all, the same always."""
        if case.sides == 0:
            return self.natural
        rng = np.random.default_rng([_FIRST_RANDOM_SIDES, case.sides])
        return sorted(rng.permutation(self.clusters)[: self.clusters // 2].tolist())

    def draw(self, rng: np.random.Generator) -> RealData:
        """Return the points of a seed, scaled."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class WordNetSetting(RealSetting):
    """Glosses of nouns: 26 categories, concrete against abstract ones, hypernyms below."""

    per_category: int = parameter(300, "training glosses of a category; a small one has fewer")
    category_tests: int = parameter(100, "test glosses of a category, at most a quarter of it")

    clusters = len(CATEGORIES)
    natural = tuple(CATEGORIES.index(name) for name in CONCRETE)
    titles = ("glosses of WordNet", "concrete against abstract")

    def draw(self, rng: np.random.Generator) -> RealData:
        """Return glosses of each category, embedded; which are for training is drawn.

        They are the first of each category in the order of the data set, which is that of a hash.
        """
        data = datasets.load("wordnet")
        most = self.per_category + self.category_tests
        members = [
            np.flatnonzero(data.categories == category)[:most] for category in range(self.clusters)
        ]
        pool = np.concatenate(members)
        texts = [data.texts[i] for i in pool]
        x = datasets.embed_texts(texts, datasets.sentence_encoder(), progress=wanted())
        held = [
            rng.permutation(len(some)) < min(self.category_tests, max(1, len(some) // 4))
            for some in members
        ]
        test = np.concatenate(held)
        categories, labels = data.categories[pool], data.labels[pool]
        points = RealPoints(x[~test], categories[~test], x[test], categories[test]).scaled()
        return RealData(points, *_finer(points, labels[~test], labels[test]))


def _finer(
    points: RealPoints, labels: IntArray, test_labels: IntArray
) -> tuple[RealPoints, IntArray]:
    """Return the points with finer labels that both training and test points have."""
    kept = np.intersect1d(labels, test_labels)
    number = np.full(max(labels.max(), test_labels.max()) + 1, -1)
    number[kept] = np.arange(len(kept))
    of_train, of_test = np.isin(labels, kept), np.isin(test_labels, kept)
    finer = RealPoints(
        points.train[of_train],
        number[labels[of_train]],
        points.test[of_test],
        number[test_labels[of_test]],
    )
    cluster_of = np.empty(len(kept), dtype=np.int64)
    cluster_of[number[labels[of_train]]] = points.train_cluster[of_train]
    return finer, cluster_of


@dataclass(frozen=True, kw_only=True)
class ImageSetting(embedded.EmbeddedSetting, RealSetting):
    """Embedded images of CIFAR-10: ten classes, animals against vehicles."""

    groups: str = parameter("2, 4, 6, 8, 10", "numbers of label groups, with commas between them")
    changed_groups: str = parameter("2, 6, 10", "those that are tried with changed points")
    size: int | None = parameter(
        128, "pixels a side that images of efficientnet-lite0 get; the others have one size"
    )
    samples: int = parameter(8000, "training images, of which a seed draws nine tenths")
    test_samples: int = parameter(2000, "test images, the first ones")

    clusters = len(embedded.CLASS_NAMES)
    natural = tuple(embedded.CLASS_NAMES.index(name) for name in ANIMALS)
    titles = ("embeddings of CIFAR-10", "animals against vehicles")

    def draw(self, rng: np.random.Generator) -> RealData:
        """Return nine tenths of the embedded training images, and the test images."""
        raw = self.load(self.test_samples)
        own = rng.permutation(len(raw.train))[: int(0.9 * len(raw.train))]
        return RealData(
            RealPoints(raw.train[own], raw.train_classes[own], raw.test, raw.test_classes).scaled()
        )
