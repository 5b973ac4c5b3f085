from __future__ import annotations

import pytest

import featavg as fa


@pytest.fixture
def binary(rng):
    return fa.BinaryNet(rng.standard_normal((6, 4)), rng.standard_normal(6))


@pytest.fixture(params=["probability", "argmax", "logit-sum"])
def multi(request, rng):
    return fa.MultiClassNet(
        rng.standard_normal((10, 4)), classes=5, positive=[1, 4], readout=request.param
    )
