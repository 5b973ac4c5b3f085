"""Losses that keep their promises pass at outputs of every size; others are refused."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.training.loss_check import check_curvature, check_loss, check_margin_of
from support.zoo import small_training

FOR_ONE_OUTPUT = (
    fa.Logistic(),
    fa.Logistic(smoothing=0.2),
    fa.Exponential(),
    fa.Square(),
    fa.Hinge(),
)
FOR_MANY_OUTPUTS = (
    fa.CrossEntropy(),
    fa.CrossEntropy(smoothing=0.2),
    fa.Exponential(),
    fa.Square(),
    fa.Hinge(),
    fa.CoarseCrossEntropy(),
    fa.CoarseCrossEntropy(fine=[0, 3]),
    fa.SuppliedLabels(np.arange(60) % 5 - 1),
)
WITH_MARGINS = (fa.Logistic, fa.CrossEntropy, fa.Exponential, fa.CoarseCrossEntropy)


class Capped(fa.Logistic):
    """The logistic loss of min(q, cap): content with a margin that is large enough."""

    def __init__(self, cap):
        super().__init__()
        object.__setattr__(self, "cap", cap)

    def losses(self, outputs, targets):
        return np.logaddexp(0, -np.minimum(self.margins(outputs, targets), self.cap))

    def residuals(self, outputs, targets):
        return (self.margins(outputs, targets) < self.cap) * super().residuals(outputs, targets)


class CappedInLogarithms(Capped):
    """The same, with the logarithms of its own losses, but the pulls of the logistic loss."""

    def log_losses(self, outputs, targets):
        return np.log(self.losses(outputs, targets))


class Rounded(fa.Logistic):
    """The logistic loss with residuals that rounding sets to 0 from margins of 37 on."""

    def residuals(self, outputs, targets):
        return (1 - 1 / (1 + np.exp(-self.margins(outputs, targets)))) * targets[None, :]


def scaled(parent, factor):
    """Return a loss that is so many times its parent, but inherits curvature and margin_of."""

    class Scaled(parent):
        def losses(self, outputs, targets):
            return factor * super().losses(outputs, targets)

        def residuals(self, outputs, targets):
            return factor * super().residuals(outputs, targets)

        def log_losses(self, outputs, targets):
            return np.log(factor) + super().log_losses(outputs, targets)

        def log_pulls(self, outputs, targets):
            return np.log(factor) + super().log_pulls(outputs, targets)

    return Scaled()


def many_classes(classes, points=100):
    rng = np.random.default_rng(0)
    train = fa.MultiCluster(clusters=classes, dim=100).sample(points, rng=rng)
    return fa.MultiClassNet.init(train, width=1, weight_scale=0.1, rng=rng), train


@pytest.mark.parametrize(
    ("kind", "loss"),
    [("binary", loss) for loss in FOR_ONE_OUTPUT] + [("multi", loss) for loss in FOR_MANY_OUTPUTS],
    ids=repr,
)
def test_every_loss_of_the_package_keeps_its_promises(kind, loss):
    net, train = small_training(kind)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0, 1e3, 60) * (rng.random(60) < 0.7)
    for tested in (loss, fa.Weighted(loss, weights), fa.Weighted(loss, 1e-20 * weights)):
        for by_logarithms in (False, True):
            assert check_loss(tested, net, train, by_logarithms=by_logarithms) is tested
        check_curvature(tested, net, train)
    if isinstance(loss, WITH_MARGINS) and not getattr(loss, "smoothing", 0):
        check_margin_of(loss, net, train)


@pytest.mark.parametrize("points", [1, 2, 5000])
def test_promises_hold_for_few_and_for_many_points(points):
    net, train = many_classes(4, points)
    check_loss(fa.CrossEntropy(), net, train, by_logarithms=True)
    check_curvature(fa.CrossEntropy(), net, train)
    check_margin_of(fa.CrossEntropy(), net, train)
    with pytest.raises(fa.InputError, match="curvature must be at least"):
        check_curvature(scaled(fa.CrossEntropy, 2), net, train)


@pytest.mark.parametrize("train_by", [fa.descend, fa.fast_forward])
def test_a_loss_that_differs_from_its_parent_only_at_large_outputs_is_refused(train_by):
    net, train = small_training("binary")
    options = {"learning_rate": 0.01, "steps": 1}
    for loss, sentence in (
        (Capped(5.0), "log_losses must be the logarithms of losses; got Capped"),
        (CappedInLogarithms(5.0), "directions times the pulls of log_pulls must be residuals"),
    ):
        with pytest.raises(fa.InputError, match=sentence):
            train_by(net, train, loss=loss, **options)


@pytest.mark.parametrize("cap", [0.5, 20.0, 50.0, 200.0, 600.0])
def test_fast_forward_refuses_caps_at_margins_of_any_size(cap):
    net, train = small_training("binary")
    options = {"learning_rate": 0.01, "steps": 1}
    for loss in (Capped(cap), CappedInLogarithms(cap)):
        with pytest.raises(fa.InputError, match="must be"):
            fa.fast_forward(net, train, loss=loss, **options)


def test_residuals_that_are_rounded_to_0_are_right_for_descent_but_not_by_logarithms():
    net, train = small_training("binary")
    options = {"learning_rate": 0.01, "steps": 20}
    rounded = fa.descend(net, train, loss=Rounded(), **options)
    plain = fa.descend(net, train, **options)
    np.testing.assert_allclose(rounded.net.weights, plain.net.weights, rtol=1e-9)
    with pytest.raises(fa.InputError, match="directions times the pulls"):
        fa.fast_forward(net, train, loss=Rounded(), **options)


@pytest.mark.parametrize("classes", [2, 10, 100])
@pytest.mark.parametrize("factor", [1.01, 10.0])
def test_a_curvature_that_is_too_low_is_found_among_many_outputs(classes, factor):
    net, train = many_classes(classes)
    loss = scaled(fa.CrossEntropy, factor)
    with pytest.raises(fa.InputError, match=r"is above 0\.5; got .*Scaled"):
        check_curvature(loss, net, train)
    check_curvature(scaled(fa.CrossEntropy, 0.5), net, train)  # an upper bound is enough
