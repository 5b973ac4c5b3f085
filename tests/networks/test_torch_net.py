"""Networks as modules of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from support.zoo import random_polynomial


@pytest.mark.parametrize("outputs", ["decision", "classes"])
def test_the_exported_module_computes_the_same(outputs, rng):
    import torch

    x = rng.standard_normal((50, 4))
    for net in (
        fa.BinaryNet(rng.standard_normal((6, 4)), rng.standard_normal(6)),
        fa.MultiClassNet(rng.standard_normal((6, 4)), 3, [0, 2]),
        fa.MultiClassNet(rng.standard_normal((6, 4)), 3, [0, 2], "argmax"),
        fa.MultiClassNet(rng.standard_normal((6, 4)), 3, [0, 2], "logit-sum"),
    ):
        if outputs == "classes" and isinstance(net, fa.BinaryNet):
            with pytest.raises(fa.InputError, match="needs a MultiClassNet"):
                net.to_torch(outputs)
            continue
        logits = net.to_torch(outputs)(torch.tensor(x)).detach().numpy()
        if outputs == "classes":
            np.testing.assert_allclose(logits, net.logits(x))
        else:
            decision = net.decision(net.outputs(x))
            np.testing.assert_allclose(logits[:, 1] - logits[:, 0], decision, atol=1e-12)
            np.testing.assert_array_equal(logits.argmax(axis=1) == 1, net.predict(x) == 1)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_the_torch_module_agrees(power, rng):
    import torch

    net = random_polynomial(rng, power)
    x = rng.standard_normal((7, net.dim))
    logits = net.to_torch()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(logits[:, 1], net.score(x), rtol=1e-12, atol=1e-14)
