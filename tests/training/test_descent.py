from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import featavg as fa


@st.composite
def problems(draw):
    """Random settings: odd k, unbalanced sides, n > d and n < d, cosine > 0, both networks."""
    clusters = draw(st.integers(2, 7))
    dim = draw(st.integers(clusters, 80))
    law = fa.MultiCluster(
        clusters=clusters,
        dim=dim,
        positive=draw(st.integers(1, clusters - 1)),
        signal=draw(st.floats(0.5, 2)),
        noise=draw(st.floats(0.2, 2)),
        cosine=draw(st.sampled_from([0.0, 0.001, 0.09, 0.5])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    train = law.sample(draw(st.integers(5, 120)), rng=rng)
    width = draw(st.integers(1, 4))
    scale = draw(st.sampled_from([1e-5, 1e-2, 0.3]))
    if draw(st.booleans()):
        net = fa.BinaryNet.init(train, width=width, weight_scale=scale, bias_scale=scale, rng=rng)
    else:
        net = fa.MultiClassNet.init(train, width=width, weight_scale=scale, rng=rng)
    # with learning_rate·d of order 1 the network really moves in 100 steps
    return net, train, draw(st.floats(0.05, 0.5)) / dim


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.vision
@settings(max_examples=60, deadline=None)
@given(problems())
def test_dual_primal_and_autograd_agree_and_coefficients_rebuild_the_weights(problem):
    from support import autograd

    net, train, learning_rate = problem
    expected = autograd.train(net, train, learning_rate, 100)
    weights, biases = expected.weights, expected.biases
    for method in ("dual", "primal"):
        run = fa.descend(net, train, learning_rate=learning_rate, steps=100, method=method)
        assert run.method == method
        assert relative_error(run.net.weights, weights) < 1e-5
        assert run.loss[-1] == pytest.approx(expected.loss, rel=1e-5)
        if net.has_biases:
            np.testing.assert_allclose(run.net.biases, biases, rtol=1e-5, atol=1e-9)

        # Lemma 5.1, written out
        mu, law = train.centers, train.law
        xi = (train.x - law.signal * mu[train.cluster]) / law.noise
        rebuilt = (
            net.weights
            + run.feature_coefficients[-1] @ (mu / (mu**2).sum(axis=1, keepdims=True))
            + run.noise_coefficients[-1] @ (xi / (xi**2).sum(axis=1, keepdims=True))
        )
        assert relative_error(rebuilt, weights) < 1e-5


@pytest.mark.vision
def test_agreement_at_the_papers_setting():
    from support import autograd

    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
    binary = fa.BinaryNet.init(train, width=5, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    multi = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
    for net in (binary, multi):
        weights = autograd.train(net, train, 1e-3, 100).weights
        run = fa.descend(net, train, learning_rate=1e-3, steps=100)
        assert run.method == "dual"
        assert relative_error(run.net.weights, weights) < 1e-5


def test_single_precision_stays_close_to_double():
    def trained(dtype):
        rng = np.random.default_rng(0)
        train = fa.MultiCluster(clusters=4, dim=500).sample(80, rng=np.random.default_rng(1))
        single = fa.Sample(
            train.law,
            train.centers.astype(dtype),
            train.x.astype(dtype),
            train.y,
            train.cluster,
            train.noise_norms.astype(dtype),
        )
        net = fa.BinaryNet.init(train, width=2, weight_scale=1e-3, bias_scale=1e-3, rng=rng)
        return fa.descend(net, single, learning_rate=1e-2, steps=100)

    single, double = trained(np.float32), trained(np.float64)
    assert single.point_coefficients.dtype == np.float32
    assert relative_error(single.net.weights, double.net.weights) < 1e-4


def test_coefficients_follow_lemma_5_2_step_by_step(small_train, rng):
    net = fa.BinaryNet.init(small_train, width=3, weight_scale=0.05, bias_scale=0.05, rng=rng)
    eta, n, m = 0.02, len(small_train), 3
    run = fa.descend(net, small_train, learning_rate=eta, steps=8, record=range(9))
    law, mu = small_train.law, small_train.centers
    for t in range(8):
        derivative = -1 / (1 + np.exp(run.margins[t]))  # l'(y f)
        for r, s in enumerate([1, 1, 1, -1, -1, -1]):
            # Lemma 5.2 has y_i = s or -s inside its derivative; written out with both signs here
            pull = -s * eta / (n * m) * small_train.y * derivative * run.active[t, r]
            for j in range(5):
                step = law.signal * (mu[j] @ mu[j]) * pull[small_train.cluster == j].sum()
                change = np.diff(run.feature_coefficients[t : t + 2, r, j])
                np.testing.assert_allclose(change, step, rtol=1e-9, atol=1e-12)
            step = law.noise * small_train.noise_norms**2 * pull
            change = run.noise_coefficients[t + 1, r] - run.noise_coefficients[t, r]
            np.testing.assert_allclose(change, step, rtol=1e-9, atol=1e-12)


def test_a_neuron_at_zero_is_active():
    """By hand: all weights 0, f = 0, sigmoid 1/2, so one step gives w = eta/(2n) sum y x."""
    law = fa.MultiCluster(clusters=2, dim=2, noise=0)
    train = law.sample(6, rng=np.random.default_rng(0))
    net = fa.BinaryNet(np.zeros((2, 2)))
    run = fa.descend(net, train, learning_rate=0.1, steps=1)
    step = 0.1 / 2 * (train.y[:, None] * train.x).mean(axis=0)
    np.testing.assert_allclose(run.net.weights, [step, -step])
    np.testing.assert_allclose(run.net.biases, 0.05 * train.y.mean() * np.array([1, -1]))


def test_the_cheaper_method_is_chosen(rng):
    def chosen(size, dim, steps):
        train = fa.MultiCluster(clusters=2, dim=dim).sample(size, rng=rng)
        net = fa.BinaryNet.init(train, width=1, weight_scale=0, bias_scale=0, rng=rng)
        return fa.descend(net, train, learning_rate=1e-3, steps=steps, record=2).method

    assert chosen(500, 20, 50) == "primal"  # more points than coordinates
    assert chosen(20, 500, 50) == "dual"
    assert chosen(300, 400, 1) == "primal"  # a Gram matrix does not pay for one step


def test_a_diverging_loss_names_the_step_and_the_learning_rate(small_train, rng):
    net = fa.BinaryNet.init(small_train, width=1, weight_scale=1.0, bias_scale=1.0, rng=rng)
    for method in ("dual", "primal"):
        with pytest.raises(fa.InputError, match=r"at step 1 of 10.*learning_rate.*1e\+308"):
            fa.descend(net, small_train, learning_rate=1e308, steps=10, method=method)


def test_bad_input_is_refused(small_train, rng):
    net = fa.BinaryNet.init(small_train, width=1, weight_scale=1.0, bias_scale=1.0, rng=rng)
    good = {"learning_rate": 0.1, "steps": 5}
    for changes, message in [
        ({"learning_rate": 0.0}, "learning_rate must be above 0; got 0.0"),
        ({"steps": -1}, "steps must be a whole number of at least 0; got -1"),
        ({"record": [6]}, "record must name steps of at most steps=5; got 6"),
        ({"record": 1}, "record must be a whole number of at least 2"),
        ({"method": "fast"}, "method must be one of 'auto', 'dual', 'primal'; got 'fast'"),
    ]:
        with pytest.raises(fa.InputError, match=message):
            fa.descend(net, small_train, **(good | changes))
    with pytest.raises(fa.InputError, match="same coordinates; got 3 and 40"):
        fa.descend(fa.BinaryNet(np.ones((2, 3))), small_train, **good)
    with pytest.raises(fa.InputError, match="output for each cluster of the sample; got 4 and 5"):
        fa.descend(fa.MultiClassNet(np.ones((4, 40)), 4), small_train, **good)


def test_progress_is_plain_lines_in_a_pipe(small_train, rng, capsys, monkeypatch):
    clock = iter(range(0, 10**7, 31))
    monkeypatch.setattr("featavg.progress.time.monotonic", lambda: next(clock))
    net = fa.BinaryNet.init(small_train, width=1, weight_scale=1.0, bias_scale=1.0, rng=rng)
    fa.descend(net, small_train, learning_rate=0.1, steps=3, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    # the clock moves by 31 s each time it is asked: 3 times until the first line is made
    assert captured.err.splitlines()[0] == "gradient descent: 1/4, about 279 s left"
    fa.descend(net, small_train, learning_rate=0.1, steps=3)
    assert capsys.readouterr().err == ""
