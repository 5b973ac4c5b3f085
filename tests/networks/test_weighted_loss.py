"""Losses with weights: against PyTorch, and against repeated points."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa

ONE_OUTPUT = [fa.Logistic(), fa.Logistic(smoothing=0.2), fa.Square(), fa.Exponential(), fa.Hinge()]
MANY_OUTPUTS = [fa.CrossEntropy(), fa.Square(), fa.CoarseCrossEntropy(fine=[0, 3, 7])]
PAIRS = [(False, loss) for loss in ONE_OUTPUT] + [(True, loss) for loss in MANY_OUTPUTS]


def problem(rng, many):
    dim = 20
    law = fa.MultiCluster(clusters=4, dim=dim, signal=dim**-0.5, noise=0.5 * dim**-0.5)
    train = law.sample(15, rng=rng)
    kind = fa.MultiClassNet if many else fa.BinaryNet
    net = kind.init(train, width=2, weight_scale=0.4, bias_scale=0.3, rng=rng)
    return net, train


def repeated(train, times):
    which = np.repeat(np.arange(len(train)), times)
    return which, fa.Sample.from_points(
        train.x[which],
        train.cluster[which],
        positive=train.law.positive_clusters,
        centers=train.centers,
    )


@pytest.mark.parametrize(("many", "loss"), PAIRS)
def test_trains_as_pytorch_does(many, loss, rng):
    autograd = pytest.importorskip("support.autograd", reason="needs PyTorch")
    net, train = problem(rng, many)
    weighted = fa.Weighted(loss, rng.uniform(0, 3, size=len(train)) * (rng.random(15) > 0.2))
    run = fa.descend(net, train, learning_rate=0.3, steps=30, loss=weighted)
    theirs = autograd.train(net, train, 0.3, 30, loss=weighted)
    np.testing.assert_allclose(run.net.weights, theirs.weights, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(run.net.biases, theirs.biases, rtol=1e-8, atol=1e-10)
    assert run.loss[-1] == pytest.approx(theirs.loss, rel=1e-8)


@pytest.mark.parametrize("method", ["primal", "dual"])
@pytest.mark.parametrize(("many", "loss"), PAIRS)
def test_whole_weights_are_repeated_points(many, loss, method, rng):
    net, train = problem(rng, many)
    times = rng.integers(1, 5, size=len(train))
    which, more = repeated(train, times)
    inner = loss
    if isinstance(loss, fa.CoarseCrossEntropy):
        inner = fa.CoarseCrossEntropy(fine=np.flatnonzero(np.isin(which, [0, 3, 7])))
    options = {"learning_rate": 0.2, "steps": 30, "method": method}
    one = fa.descend(net, train, loss=fa.Weighted(loss, times / times.mean()), **options)
    other = fa.descend(net, more, loss=inner, **options)
    np.testing.assert_allclose(one.net.weights, other.net.weights, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-10)
    np.testing.assert_allclose(one.margins[:, which], other.margins, rtol=1e-9, atol=1e-11)


def test_points_without_weight_do_not_count(rng):
    net, train = problem(rng, many=False)
    kept = np.arange(15) % 3 > 0
    weighted = fa.Weighted(fa.Logistic(), kept / kept.mean())
    one = fa.descend(net, train, learning_rate=0.3, steps=30, loss=weighted)
    other = fa.descend(net, repeated(train, kept.astype(int))[1], learning_rate=0.3, steps=30)
    np.testing.assert_allclose(one.net.weights, other.net.weights, rtol=1e-10, atol=1e-12)


def test_batches_take_the_weights_of_their_points(rng):
    autograd = pytest.importorskip("support.autograd", reason="needs PyTorch")
    from featavg.training.descent import _batches

    for many, loss in ((False, fa.Logistic()), (True, fa.CoarseCrossEntropy())):
        net, train = problem(rng, many)
        weighted = fa.Weighted(loss, rng.uniform(0, 3, size=len(train)))
        draw = np.random.default_rng
        run = fa.descend(
            net, train, learning_rate=0.3, steps=20, loss=weighted, rule=fa.SGD(4), rng=draw(5)
        )
        batches = _batches(4, len(train), draw(5))
        theirs = autograd.train(net, train, 0.3, 20, loss=weighted, batches=batches)
        np.testing.assert_allclose(run.net.weights, theirs.weights, rtol=1e-8, atol=1e-10)


def test_fast_forward_is_descent(rng):
    net, train = problem(rng, many=False)
    loss = fa.Weighted(fa.Logistic(), rng.uniform(0, 3, size=len(train)))
    options = {"learning_rate": 1e-3, "steps": 3000, "record": 2, "loss": loss}
    literal, leaps = fa.descend(net, train, **options), fa.fast_forward(net, train, **options)
    np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02, atol=0.02)


def test_promises_follow_the_loss_and_the_weights(rng):
    weights = np.array([0.0, 0.5, 3.0])
    for loss in (*ONE_OUTPUT, *MANY_OUTPUTS):
        weighted = fa.Weighted(loss, weights)
        assert weighted.log_lipschitz == loss.log_lipschitz
        if loss.curvature is None:
            assert weighted.curvature is None
            assert weighted.curvatures(3) is None
        else:
            assert weighted.curvature == 3 * loss.curvature
            assert (weighted.curvatures(3) == weights * loss.curvature).all()


def test_the_stable_learning_rate_is_that_of_repeated_points(rng):
    for many in (False, True):
        net, train = problem(rng, many)
        times = rng.integers(1, 5, size=len(train))
        _, more = repeated(train, times)
        loss = fa.Weighted(net.default_loss, times / times.mean())
        expected = fa.stable_learning_rate(net, more)
        assert fa.stable_learning_rate(net, train, loss) == pytest.approx(expected)


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.0, 0.0], [], [np.nan, 1.0], ["a", "b"]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(fa.InputError, match="weights must"):
        fa.Weighted(fa.Logistic(), weights)


def test_what_it_cannot_be_used_with_is_refused(rng):
    net, train = problem(rng, many=False)
    with pytest.raises(fa.InputError, match="for each of the 15 points of the sample; got 2"):
        fa.descend(net, train, learning_rate=1, steps=1, loss=fa.Weighted(fa.Logistic(), [1, 2]))
    with pytest.raises(fa.InputError, match="loss must be a Loss"):
        fa.Weighted("logistic", [1.0])
    with pytest.raises(fa.InputError, match="smoothed margin needs"):
        fa.smoothed_margin(net, train, fa.Weighted(fa.Logistic(), np.ones(15)))
