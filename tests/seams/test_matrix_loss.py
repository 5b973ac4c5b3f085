"""Every method with other losses than the default: right, or refused."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy.special import expit

import featavg as fa
from featavg.theory import ProofQuantities
from support.seam_matrix import (
    USUAL,
    SeamMatrix,
    binary,
    check_distance,
    check_radii,
    check_saved,
    check_stationarity,
    descend_by_hand,
    fitted,
    multi,
    refused,
    relu,
    step,
)


class TestLoss(SeamMatrix):
    """Other losses, and coarse labels on the outputs of clusters."""

    def test_train(self):
        y = USUAL.y
        for loss, slope in (
            (fa.Square(), lambda f: f - y),
            (fa.Exponential(), lambda f: -y * np.exp(-y * f)),
            (fa.Hinge(), lambda f: -y * (y * f < 1)),
            (fa.Logistic(smoothing=0.2), lambda f: expit(f) - (0.9 * (y > 0) + 0.1 * (y < 0))),
        ):
            net = binary(USUAL)
            run = fa.descend(net, USUAL, learning_rate=0.01, steps=20, loss=loss)
            W, _ = descend_by_hand(net, USUAL, 0.01, 20, slope, relu, step)
            np.testing.assert_allclose(run.net.weights, W, rtol=1e-8, atol=1e-11)
            assert run.loss_function == loss
        refused("one output", fa.descend, multi(USUAL), USUAL, learning_rate=1, steps=1,
                loss=fa.Logistic())  # fmt: skip
        for loss in (fa.CrossEntropy(), fa.CoarseCrossEntropy()):
            refused("output for each cluster", fa.descend, binary(USUAL), USUAL, learning_rate=1,
                    steps=1, loss=loss)  # fmt: skip

    def test_fast_forward(self):
        for net, loss in (
            (binary(USUAL), fa.Exponential()),
            (multi(USUAL), fa.CoarseCrossEntropy(fine=[0, 1, 2])),
        ):
            literal = fa.descend(net, USUAL, learning_rate=1e-4, steps=2000, record=2, loss=loss)
            leaps = fa.fast_forward(
                net, USUAL, learning_rate=1e-4, steps=2000, tolerance=1e-3, record=2, loss=loss
            )
            np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02)
        for loss in (fa.Square(), fa.Hinge(), fa.Logistic(smoothing=0.1)):
            refused("needs a loss", fa.fast_forward, binary(USUAL), USUAL, learning_rate=1,
                    steps=1, loss=loss)  # fmt: skip

    def test_exact_radii(self):
        """The radius is that of the network, whatever it was trained by."""
        net = fitted(multi(USUAL, readout="argmax"), USUAL, loss=fa.CoarseCrossEntropy())
        check_radii(net, USUAL.x, USUAL.y, fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1))

    def test_bracket(self):
        net = fitted(multi(USUAL), USUAL, loss=fa.CoarseCrossEntropy())
        radii = fa.exact_radii(net, USUAL.x, USUAL.y, jobs=1)
        moved = net.predict(USUAL.x + radii.perturbations)
        assert (moved != USUAL.y)[radii.upper > 0].all()
        assert (radii.lower <= radii.upper).all()

    def test_attacks(self):
        """The objective "cross-entropy" is the network's own, not the loss it was trained by."""
        net = fitted(binary(USUAL), USUAL, loss=fa.Square())
        results = [
            fa.pgd(net, USUAL.x, USUAL.y, radius=5.0, rng=np.random.default_rng(0), objective=o)
            for o in ("readout", "cross-entropy")
        ]
        # of one output both have the same direction
        np.testing.assert_array_equal(results[0].perturbations, results[1].perturbations)

    def test_margins(self):
        net = multi(USUAL)
        F, own = net.outputs(USUAL.x), USUAL.law.signs[:, None] == USUAL.y
        q = np.where(own, F, -np.inf).max(axis=0) - np.where(own, -np.inf, F).max(axis=0)
        theta = np.linalg.norm(net.weights)
        coarse = fa.CoarseCrossEntropy()
        assert fa.normalized_margin(net, USUAL, coarse) == pytest.approx(q.min() / theta)
        exponential = fa.smoothed_margin(binary(USUAL), USUAL, fa.Exponential())
        q, theta = USUAL.y * binary(USUAL).score(USUAL.x), binary(USUAL)
        norm = np.sqrt(np.square(theta.weights).sum() + np.square(theta.biases).sum())
        assert exponential == pytest.approx(-np.log(np.exp(-q).sum()) / norm)
        for loss in (fa.Square(), fa.Hinge(), fa.Logistic(smoothing=0.1)):
            refused("smoothed margin needs", fa.smoothed_margin, binary(USUAL), USUAL, loss)
        run = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=5, loss=fa.Square())
        refused("smoothed margin needs", fa.MarginHistory.of, run)

    def test_kkt(self):
        """The constraints are margins, whatever the network was trained by."""
        net = fitted(binary(USUAL), USUAL, loss=fa.Hinge())
        check_stationarity(net, USUAL, step(net.preactivations(USUAL.x)))
        assert "loss" not in inspect.signature(fa.kkt_residual).parameters

    def test_distance(self):
        check_distance(fitted(binary(USUAL, bias_scale=None), USUAL, loss=fa.Square()), USUAL)

    def test_theory(self):
        run = fa.descend(binary(USUAL), USUAL, learning_rate=0.01, steps=2, loss=fa.Square())
        refused("proofs need Logistic", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        net = fitted(multi(USUAL), USUAL, loss=fa.CoarseCrossEntropy())
        outputs = net.to_torch("classes")(torch.tensor(USUAL.x)).detach().numpy()
        np.testing.assert_allclose(outputs.T, net.outputs(USUAL.x), rtol=1e-9, atol=1e-12)

    def test_save_load(self, tmp_path):
        check_saved(fitted(binary(USUAL), USUAL, loss=fa.Square()), tmp_path)
