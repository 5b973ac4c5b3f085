"""Autograd as the oracle: every activation, loss and rule trains as a PyTorch loop does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featavg as fa
from featavg.training.descent import _batches

pytestmark = pytest.mark.vision

SEEDS = st.integers(0, 10**6)
ACTIVATIONS = [
    fa.ReLU(),
    fa.LeakyReLU(0.2),
    fa.ReLUPower(2),
    fa.ReLUPower(3, normalized=True),
    fa.Softplus(1.5),
]
ONE_OUTPUT = [
    fa.Logistic(),
    fa.Logistic(smoothing=0.2),
    fa.Square(),
    fa.Exponential(),
    fa.Hinge(),
]
MANY_OUTPUTS = [
    fa.CrossEntropy(),
    fa.CrossEntropy(smoothing=0.3),
    fa.Square(),
    fa.Exponential(),
    fa.Hinge(),
    fa.CoarseCrossEntropy(),
    fa.CoarseCrossEntropy(fine=[0, 3, 7, 11]),
]


def problem(seed, *, many=False, activation=fa.ReLU(), biases=True, second=False):  # noqa: B008
    """Return a network and points of norm about 1, at which all activations learn."""
    rng = np.random.default_rng(seed)
    dim, clusters = int(rng.integers(8, 40)), int(rng.integers(2, 6))
    law = fa.MultiCluster(clusters=clusters, dim=dim, signal=dim**-0.5, noise=0.5 * dim**-0.5)
    train = law.sample(int(rng.integers(12, 40)), rng=rng)
    scale = 0.3 if biases else None
    if many:
        net = fa.MultiClassNet.init(
            train, width=2, weight_scale=0.4, bias_scale=scale, rng=rng, activation=activation
        )
    else:
        net = fa.BinaryNet.init(
            train,
            width=3,
            weight_scale=0.4,
            bias_scale=scale,
            rng=rng,
            activation=activation,
            train_second_layer=second,
        )
    return net, train, rng


def check(net, run, expected):
    for found, wanted, start in (
        (run.net.weights, expected.weights, net.weights),
        (run.net.biases, expected.biases, net.biases),
        (run.net.second_layer.sum(axis=0), expected.second_layer, net.second_layer.sum(axis=0)),
    ):
        assert np.abs(found - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1e-3)
        if net.has_biases and start is net.biases:
            assert np.abs(found - start).max() > 0
    assert np.linalg.norm(run.net.weights - net.weights) > 1e-4 * np.linalg.norm(net.weights)
    assert run.loss[-1] == pytest.approx(expected.loss, rel=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@settings(max_examples=6, deadline=None)
@given(seed=SEEDS, many=st.booleans(), biases=st.booleans(), second=st.booleans())
def test_activations(activation, seed, many, biases, second):
    from support import autograd

    net, train, _ = problem(seed, many=many, activation=activation, biases=biases, second=second)
    run = fa.descend(net, train, learning_rate=0.2, steps=40)
    check(net, run, autograd.train(net, train, 0.2, 40))


@pytest.mark.parametrize(
    ("loss", "many"),
    [*((loss, False) for loss in ONE_OUTPUT), *((loss, True) for loss in MANY_OUTPUTS)],
    ids=repr,
)
@settings(max_examples=6, deadline=None)
@given(seed=SEEDS)
def test_losses(loss, many, seed):
    from support import autograd

    net, train, _ = problem(seed, many=many)
    run = fa.descend(net, train, learning_rate=0.2, steps=40, loss=loss)
    check(net, run, autograd.train(net, train, 0.2, 40, loss=loss))


@pytest.mark.parametrize(
    ("rule", "optimizer", "options"),
    [
        (fa.GradientDescent(), "SGD", {}),
        (fa.Momentum(0.9), "SGD", {"momentum": 0.9}),
        (fa.WeightDecay(0.1), "SGD", {"weight_decay": 0.1}),
        (fa.Adam(), "Adam", {}),
        (
            fa.Adam(first=0.8, second=0.95, epsilon=1e-6),
            "Adam",
            {"betas": (0.8, 0.95), "eps": 1e-6},
        ),
        (fa.SignDescent(), "Signs", {}),
        (fa.SAM(0.1), "SGD", {"sharpness": 0.1}),
    ],
    ids=lambda value: repr(value)[:40],
)
@settings(max_examples=6, deadline=None)
@given(seed=SEEDS, many=st.booleans(), second=st.booleans())
def test_rules(rule, optimizer, options, seed, many, second):
    import torch

    from support import autograd

    rate = 0.01 if optimizer in ("Adam", "Signs") else 0.2
    net, train, _ = problem(seed, many=many, second=second)
    run = fa.descend(net, train, learning_rate=rate, steps=40, rule=rule)
    kind = autograd.Signs if optimizer == "Signs" else getattr(torch.optim, optimizer)
    check(net, run, autograd.train(net, train, rate, 40, optimizer=kind, **options))


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, size=st.integers(1, 12), momentum=st.booleans())
def test_mini_batches(seed, size, momentum):
    from support import autograd

    net, train, _ = problem(seed)
    rule = fa.Momentum(0.5, batch=size) if momentum else fa.SGD(size)
    rng = np.random.default_rng(seed)
    run = fa.descend(net, train, learning_rate=0.1, steps=30, rule=rule, rng=rng)
    batches = _batches(size, len(train), np.random.default_rng(seed))
    options = {"momentum": 0.5} if momentum else {}
    check(net, run, autograd.train(net, train, 0.1, 30, batches=batches, **options))
    # every point once in an epoch, as far as whole batches go
    batches = _batches(size, len(train), np.random.default_rng(seed))
    points = np.arange(len(train))  # a batch of all of them is a slice
    epoch = np.concatenate([points[next(batches)] for _ in range(len(train) // size)])
    assert len(set(epoch.tolist())) == len(epoch)


def test_mini_batches_need_a_generator():
    net, train, _ = problem(0)
    with pytest.raises(fa.InputError, match="rng must be a numpy Generator"):
        fa.descend(net, train, learning_rate=0.1, steps=1, rule=fa.SGD(4))
