from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from torch import nn


@pytest.fixture(scope="module")
def fine() -> nn.Module:
    from support.blob_images import blobs, trained_on

    images, labels = blobs(1500, 1)
    return trained_on(labels, images, 10)


@pytest.fixture(scope="module")
def coarse() -> nn.Module:
    from support.blob_images import blobs, trained_on

    images, labels = blobs(1500, 1)
    return trained_on(labels // 5, images, 2)


@pytest.fixture(scope="module")
def held_out() -> tuple[np.ndarray, np.ndarray]:
    from support.blob_images import blobs

    return blobs(100, 2)
