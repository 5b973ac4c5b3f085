"""Every method with other readouts than the default: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.measures.distance import distance_to_averaging
from featavg.theory import ProofQuantities
from support.seam_matrix import (
    USUAL,
    SeamMatrix,
    check_radii,
    check_saved_classes,
    fitted,
    multi,
    refused,
)


class TestReadout(SeamMatrix):
    """The readout "logit-sum", which is that of a `BinaryNet`."""

    net = fitted(multi(USUAL, readout="logit-sum"), USUAL)
    x, y = USUAL.x, USUAL.y

    def test_train(self):
        """Training is by the outputs of the classes, whatever the readout."""
        other = fitted(multi(USUAL), USUAL)
        np.testing.assert_array_equal(self.net.weights, other.weights)

    def test_fast_forward(self):
        options = {"learning_rate": 1e-3, "steps": 500, "record": 2}
        runs = [fa.fast_forward(multi(USUAL, readout=r), USUAL, **options)
                for r in ("logit-sum", "argmax")]  # fmt: skip
        np.testing.assert_array_equal(runs[0].net.weights, runs[1].net.weights)
        assert runs[0].net.readout == "logit-sum"

    def test_exact_radii(self):
        radii = fa.exact_radii(self.net, self.x, self.y, jobs=1)
        check_radii(self.net, self.x, self.y, radii)
        twin = fa.exact_radii(self.net.to_binary(), self.x, self.y, jobs=1)
        np.testing.assert_allclose(radii.upper, twin.upper, rtol=1e-9)
        argmax = fa.exact_radii(self.net.with_readout("argmax"), self.x, self.y, jobs=1)
        assert np.abs(argmax.upper - radii.upper).max() > 0.1
        assert radii.verify(self.net, self.x).holds
        assert fa.exact_radii(self.net, self.x[:2], self.y[:2], norm="linf").norm == "linf"

    def test_bracket(self):
        """There is nothing between the bounds: they are those of the search."""
        curves = [fa.robust_curve(self.net, self.x, self.y, radii=[1.0, 3.0], method=m)
                  for m in ("exact", "bracket", "auto")]  # fmt: skip
        for curve in curves:
            np.testing.assert_allclose(curve.broken_at, curves[0].broken_at)
            np.testing.assert_allclose(curve.safe_until, curve.broken_at, rtol=1e-5)

    def test_attacks(self):
        exact = fa.exact_radii(self.net, self.x, self.y, jobs=1)
        attack = fa.minimal_norm(self.net, self.x, self.y)
        assert (attack.upper >= exact.lower * (1 - 1e-9)).all()
        np.testing.assert_allclose(np.median(attack.upper), np.median(exact.upper), rtol=0.01)
        found = fa.pgd(self.net, self.x, self.y, radius=8.0, rng=np.random.default_rng(0))
        flipped = self.net.predict(self.x + found.perturbations) != self.y
        np.testing.assert_array_equal(flipped, found.success)

    def test_margins(self):
        """Margins are of the classes: the readout takes no part."""
        other = self.net.with_readout("argmax")
        assert fa.normalized_margin(self.net, USUAL) == fa.normalized_margin(other, USUAL)

    def test_kkt(self):
        other = self.net.with_readout("argmax")
        found, same = (fa.kkt_residual(net, USUAL).stationarity for net in (self.net, other))
        assert found == same

    def test_distance(self):
        """A distance is of a network of one output, so of the `BinaryNet` that it is."""
        refused("one output", distance_to_averaging, self.net, USUAL)
        assert distance_to_averaging(self.net.to_binary(), USUAL).lower > 0.1

    def test_theory(self):
        """The proofs are about the weights; what decides is set by the ledger."""
        run = fa.descend(self.net, USUAL, learning_rate=0.01, steps=2)
        assert ProofQuantities(run).width == 2

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        logits = self.net.to_torch()(torch.tensor(self.x)).detach().numpy()
        np.testing.assert_allclose(logits[:, 1], self.net.score(self.x))

    def test_save_load(self, tmp_path):
        check_saved_classes(self.net, np.array([1, 1, 0, 0]), tmp_path)
