"""Networks to train and to try radii on, and what a perturbation has to do."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import featavg as fa

SEEDS = st.integers(0, 2**32 - 1)


def random_binary(rng, most=4):
    width, dim = int(rng.integers(1, most + 1)), int(rng.integers(1, 7))
    biases = rng.standard_normal(2 * width) * rng.integers(0, 2)
    return fa.BinaryNet(rng.standard_normal((2 * width, dim)), biases)


def random_multi(rng, readout):
    classes, width, dim = (int(rng.integers(*r)) for r in ((2, 5), (1, 3), (1, 6)))
    positive = rng.choice(classes, size=int(rng.integers(1, classes)), replace=False)
    weights = rng.standard_normal((classes * width, dim))
    return fa.MultiClassNet(weights, classes, positive.tolist(), readout)


def random_net(rng):
    if rng.random() < 0.4:
        return random_binary(rng)
    return random_multi(rng, str(rng.choice(["probability", "argmax", "logit-sum"])))


def odd_networks(rng):
    """Yield networks that are not in general position, with a point of the same kind."""
    for style in ("duplicates", "dead", "collinear", "integers", "mixed scales", "far", "shared"):
        for multi in (False, True):
            classes, width = int(rng.integers(2, 5)), int(rng.integers(1, 3))
            neurons, dim = (classes * width if multi else 2 * width), int(rng.integers(1, 6))
            W, x = rng.standard_normal((neurons, dim)), rng.standard_normal((1, dim))
            b = rng.standard_normal(neurons) * rng.integers(0, 2)
            if style == "duplicates":
                W = W[rng.integers(0, neurons, neurons)]
            elif style == "dead":
                W[rng.random(neurons) < 0.4] = 0
            elif style == "collinear":
                W = W[:1] * rng.standard_normal((neurons, 1))
            elif style == "integers":
                W, b, x = np.round(1.5 * W), np.round(2 * b), np.round(2 * x)
            elif style == "mixed scales":
                W = W * 10.0 ** rng.uniform(-3, 3, (neurons, 1))
            elif style == "far":
                x = x * 10.0 ** rng.uniform(-3, 4)
            elif style == "shared":
                half = neurons // 2
                W[half : 2 * half], b[half : 2 * half] = W[:half], b[:half]
            if multi:
                positive = int(rng.integers(1, classes))
                yield style, fa.MultiClassNet(W, classes, positive, "argmax"), x
            else:
                yield style, fa.BinaryNet(W, b), x


def assert_closed(radii):
    """The bounds agree; a radius is exact unless no perturbation can be seen to turn."""
    assert ((radii.lower >= radii.upper * (1 - 1e-6)) | (radii.lower == radii.upper)).all()
    np.testing.assert_array_equal(radii.exact, radii.turns)


def check_perturbations(net, x, y, radii, *, thin_sets=False):
    """Each turns the decision, as it is and stretched by 1e-6, and has the claimed norm.

    With `thin_sets`, points are left out whose only way out may be a set without interior, such as
    the origin, where a network without biases is silent: there the score is 0 up to rounding.
    """
    rho = radii.perturbations
    finite = np.isfinite(radii.upper) & (radii.upper > 0)
    np.testing.assert_allclose(np.linalg.norm(rho, axis=1)[finite], radii.upper[finite], rtol=5e-5)
    assert not rho[~finite].any()
    size = np.abs(net.weights).sum() * (np.linalg.norm(x, axis=1) + np.linalg.norm(rho, axis=1))
    thin = np.abs(net.decision(net.outputs(x + rho))) <= 1e-13 * size
    if not thin_sets:
        thin[:] = False
    for stretch in (1, 1 + 1e-6):
        moved = net.predict(x + stretch * rho)
        np.testing.assert_array_equal(moved[finite & ~thin], -y[finite & ~thin])


def random_polynomial(rng, power=None):
    neurons, dim = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    outer = rng.standard_normal(neurons)
    outer[:2] = [1.0, -0.5]  # both sides speak
    power = int(rng.integers(1, 4)) if power is None else power
    return polynomial(rng.standard_normal((neurons, dim)), outer, power)


def polynomial(weights, outer, power=1, train_second_layer=True):
    """Return the network of Min and Vidal: normalized powers of ReLUs, without biases."""
    return fa.BinaryNet(
        weights,
        second_layer=outer,
        activation=fa.ReLUPower(power, normalized=True),
        train_biases=False,
        train_second_layer=train_second_layer,
    )


def random_problem(seed):
    rng = np.random.default_rng(seed)
    dim, points = int(rng.integers(1, 12)), 15
    if rng.random() < 0.5:
        width = int(rng.integers(1, 5))
        net = fa.BinaryNet(rng.standard_normal((2 * width, dim)), rng.standard_normal(2 * width))
    else:
        net = fa.MultiClassNet(
            rng.standard_normal((8, dim)),
            classes=4,
            positive=[0, 2],
            readout=str(rng.choice(["probability", "argmax", "logit-sum"])),
        )
    return net, rng.standard_normal((points, dim)), rng.choice([-1, 1], points), rng


def small_training(kind, seed=0, points=60, dim=1000):
    """Return a binary or a multi-class network, as it is initialised, and four clusters."""
    rng = np.random.default_rng(seed)
    train = fa.MultiCluster(clusters=4, dim=dim).sample(points, rng=rng, coordinates="span")
    if kind == "binary":
        net = fa.BinaryNet.init(train, width=3, weight_scale=1e-6, bias_scale=1e-6, rng=rng)
    else:
        net = fa.MultiClassNet.init(train, width=1, weight_scale=1e-6, rng=rng)
    return net, train
