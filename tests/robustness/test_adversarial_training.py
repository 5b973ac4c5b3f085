"""Adversarial training: against closed forms, PyTorch and exact radii."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import featavg as fa
from featavg.training.rule import TrainingStep

LAW = fa.MultiCluster(clusters=4, dim=30)


@pytest.fixture
def train():
    return LAW.sample(40, rng=np.random.default_rng(0))


def binary(train, seed=1, **options):
    options = {"width": 3, "weight_scale": 0.05, "bias_scale": 0.05, **options}
    return fa.BinaryNet.init(train, rng=np.random.default_rng(seed), **options)


def latent(train, readout="argmax"):
    rng = np.random.default_rng(1)
    return fa.MultiClassNet.init(train, width=2, weight_scale=0.05, rng=rng, readout=readout)


def step_of(net, train, loss=None, step=0):
    loss = loss or net.default_loss
    Z, targets = net.preactivations(train.x), loss.targets(net.output_count, train)
    return TrainingStep(step, net, train.x, Z, train.y, loss, targets)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_linear_network_is_attacked_along_its_weight(norm, train):
    rng = np.random.default_rng(3)
    net = fa.BinaryNet(rng.standard_normal((2, 30)), [1000.0, 1000.0])  # both neurons stay on
    w = net.weights[0] - net.weights[1]
    unit = w / np.linalg.norm(w) if norm == "l2" else np.sign(w)
    worst = train.x - 3.0 * train.y[:, None] * unit
    rule = fa.AdversarialTraining(3.0, norm=norm, steps=1)
    run = fa.descend(net, train, learning_rate=0.1, steps=1, rule=rule)
    pull = train.y * expit(-train.y * net.score(worst)) / len(train)
    expected = net.weights + 0.1 * np.stack([pull @ worst, -pull @ worst])
    np.testing.assert_allclose(run.net.weights, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.vision
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("many", [False, True])
def test_trains_as_a_loop_of_pytorch_does(norm, many, train):
    import torch

    net = latent(train) if many else binary(train)
    loss = fa.CoarseCrossEntropy() if many else fa.Logistic()
    rule = fa.AdversarialTraining(0.8, norm=norm, steps=4, ramp=3)
    run = fa.descend(net, train, learning_rate=0.05, steps=6, rule=rule, loss=loss)
    x, y = torch.tensor(train.x), torch.tensor(train.y)
    W = torch.tensor(net.weights, requires_grad=True)
    b = torch.tensor(net.biases, requires_grad=net.has_biases)
    A = torch.tensor(net.second_layer)
    own = torch.tensor(train.law.signs)[None, :] == y[:, None]

    def losses(points):
        f = torch.relu(points @ W.T + b) @ A.T
        if not many:
            return torch.nn.functional.softplus(-y * f[:, 0])
        return -(torch.softmax(f, dim=1) * own).sum(dim=1).log()

    for step in range(6):
        radius = 0.8 * min(1, (step + 1) / 3)
        rho = torch.zeros_like(x)
        for _ in range(4):
            rho.requires_grad_(True)
            (slope,) = torch.autograd.grad(losses(x + rho).sum(), rho)
            with torch.no_grad():
                if norm == "l2":
                    rho = rho + 2.5 * radius / 4 * slope / slope.norm(dim=1, keepdim=True)
                    rho = rho * (radius / rho.norm(dim=1, keepdim=True)).clamp(max=1)
                else:
                    rho = (rho + 2.5 * radius / 4 * slope.sign()).clamp(-radius, radius)
        moving = [W, b] if net.has_biases else [W]
        slopes = torch.autograd.grad(losses(x + rho.detach()).mean(), moving)
        with torch.no_grad():
            for value, slope in zip(moving, slopes, strict=True):
                value -= 0.05 * slope
    np.testing.assert_allclose(run.net.weights, W.detach().numpy(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(run.net.biases, b.detach().numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "rule", [fa.GradientDescent(), fa.SGD(8), fa.Momentum(), fa.SAM(0.1), fa.Adam()], ids=repr
)
def test_a_radius_of_zero_is_the_rule_alone(rule, train):
    runs = [
        fa.descend(
            binary(train),
            train,
            learning_rate=0.01,
            steps=15,
            rule=used,
            rng=np.random.default_rng(2),
        )
        for used in (rule, fa.AdversarialTraining(0.0, rule=rule))
    ]
    np.testing.assert_allclose(runs[1].net.weights, runs[0].net.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(runs[1].net.biases, runs[0].net.biases, rtol=1e-9, atol=1e-12)
    assert not runs[1].exact_coefficients


def test_training_turns_with_the_points():
    law = fa.MultiCluster(clusters=3, dim=400)
    train = law.sample(20, rng=np.random.default_rng(0), coordinates="span", reserve=6)
    net, rule = binary(train), fa.AdversarialTraining(2.0, steps=5)
    run = fa.descend(net, train, learning_rate=0.01, steps=5, rule=rule)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((train.x.shape[1],) * 2))[0]
    turned = fa.Sample.from_points(train.x @ turn, train.cluster, positive=2)
    start = fa.BinaryNet(net.weights @ turn, net.biases)  # in coordinates of its own
    other = fa.descend(start, turned, learning_rate=0.01, steps=5, rule=rule)
    np.testing.assert_allclose(other.net.weights, run.net.weights @ turn, atol=1e-9)
    for refused in (
        fa.AdversarialTraining(2.0, norm="linf"),
        fa.AdversarialTraining(2.0, rule=fa.Adam()),
    ):
        assert not refused.rotation_equivariant
        with pytest.raises(fa.InputError, match="commutes with rotations"):
            fa.descend(net, train, learning_rate=0.01, steps=1, rule=refused)


def test_weights_stay_in_the_span_of_points_and_initial_weights():
    train = fa.MultiCluster(clusters=4, dim=200).sample(30, rng=np.random.default_rng(0))
    net = latent(train)
    rule = fa.AdversarialTraining(3.0)
    run = fa.descend(
        net, train, learning_rate=0.01, steps=10, rule=rule, loss=fa.CoarseCrossEntropy()
    )
    basis = np.linalg.qr(np.vstack([train.x, net.weights]).T)[0]
    outside = run.net.weights - (run.net.weights @ basis) @ basis.T
    assert np.abs(outside).max() < 1e-10 * np.abs(run.net.weights).max()


@pytest.mark.parametrize("many", [False, True])
def test_the_exact_attack_turns_all_that_can_be_turned(many, train):
    net = latent(train) if many else binary(train)
    net = fa.descend(net, train, learning_rate=0.01, steps=100).net
    radii = fa.exact_radii(net, train.x, train.y, jobs=1)
    radius = float(np.median(radii.upper)) * (1 + 1e-6)
    loss = fa.CoarseCrossEntropy() if many else None
    points = {
        attack: fa.AdversarialTraining(radius, attack=attack).perturbed_points(
            step_of(net, train, loss)
        )
        for attack in ("exact", "pgd")
    }
    turned = {attack: net.predict(x) != train.y for attack, x in points.items()}
    lengths = np.linalg.norm(points["exact"] - train.x, axis=1)
    np.testing.assert_allclose(lengths, radius, rtol=1e-9)
    can_be = radii.upper < radius * (1 - 1e-5)
    assert can_be.any()
    assert not (radii.lower > radius)[turned["pgd"]].any()  # no attack turns more than there is
    assert turned["exact"][can_be].mean() >= 0.9  # beyond the first crossing it may turn back


def test_training_with_the_exact_attack(train):
    net = fa.descend(binary(train), train, learning_rate=0.01, steps=20).net
    rule = fa.AdversarialTraining(1.0, attack="exact")
    run = fa.descend(net, train, learning_rate=0.001, steps=1, rule=rule)
    worst = rule.perturbed_points(step_of(net, train))
    Z = net.preactivations(worst)
    pull = train.y * expit(-train.y * net.score(worst)) / len(train)
    G = net.second_layer.T * pull * (Z >= 0)
    np.testing.assert_allclose(run.net.weights, net.weights + 0.001 * G @ worst, rtol=1e-9)


def test_where_the_loss_is_flat_the_decision_is_attacked(train):
    net = fa.descend(binary(train), train, learning_rate=0.05, steps=300).net
    step = step_of(net, train, fa.Hinge())
    assert not fa.Hinge().residuals(net.outputs(train.x), step.targets).any()
    moved = fa.AdversarialTraining(2.0).perturbed_points(step)
    margins = [train.y * net.score(x) for x in (train.x, moved)]
    assert (margins[1] < margins[0] - 0.1).all()


def test_refusals(train):
    with pytest.raises(fa.InputError, match="radius must be at least 0"):
        fa.AdversarialTraining(-1.0)
    with pytest.raises(fa.InputError, match="norm must be"):
        fa.AdversarialTraining(1.0, norm="l1")
    with pytest.raises(fa.InputError, match="attack must be one of"):
        fa.AdversarialTraining(1.0, attack="fgsm")
    with pytest.raises(fa.InputError, match="leaves the points alone"):
        fa.AdversarialTraining(1.0, rule=fa.AdversarialTraining(1.0))
    with pytest.raises(fa.InputError, match="argmax readout"):
        fa.descend(
            latent(train, "probability"),
            train,
            learning_rate=0.01,
            steps=1,
            rule=fa.AdversarialTraining(1.0, attack="exact"),
        )
