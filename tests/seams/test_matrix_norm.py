"""Every method with other norms than the default: right, or refused."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import featavg as fa
from featavg.estimators import load
from featavg.measures.distance import distance_to_averaging
from featavg.theory import ProofQuantities
from support.seam_matrix import SeamMatrix, refused


class TestNorm(SeamMatrix):
    """A norm is refused by every method that does not know it, and results say theirs."""

    net = fa.BinaryNet(np.eye(2))
    x, y = np.array([[3.0, 1.0]]), np.array([1])

    class Stretched(fa.L2):
        def length(self, u):
            return 10 * super().length(u)

    def test_train(self):
        assert "norm" not in inspect.signature(fa.descend).parameters

    def test_fast_forward(self):
        assert "norm" not in inspect.signature(fa.fast_forward).parameters

    def test_exact_radii(self):
        assert fa.exact_radii(self.net, self.x, self.y, norm="L2").norm == "l2"
        assert fa.exact_radii(self.net, self.x, self.y, norm="LInf").norm == "linf"
        for norm in ("l1", 2, None, self.Stretched()):
            refused("'l2' or 'linf'", fa.exact_radii, self.net, self.x, self.y, norm=norm)

    def test_bracket(self):
        many = fa.MultiClassNet(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]), classes=3)
        assert fa.exact_radii(many, self.x, self.y).norm == "l2"
        refused("norms other than 'l2'", fa.exact_radii, many, self.x, self.y, norm="linf")
        two = fa.MultiClassNet(np.eye(2), classes=2)  # the likelier class has the larger output
        assert fa.exact_radii(two, self.x, self.y, norm="linf").upper[0] == pytest.approx(1.0)

    def test_attacks(self):
        rng = np.random.default_rng(0)
        along = {"radius": 1.0, "direction": [1.0, -1.0]}
        assert fa.pgd(self.net, self.x, self.y, radius=1.0, rng=rng).norm == "l2"
        assert fa.direction_attack(self.net, self.x, self.y, **along).norm == "l2"
        assert fa.minimal_norm(self.net, self.x, self.y).norm == "l2"
        refused("for pgd", fa.pgd, self.net, self.x, self.y, radius=1.0, rng=rng, norm="linf")
        refused("norm must be", fa.direction_attack, self.net, self.x, self.y, **along, norm="l1")
        refused("norm must be", fa.minimal_norm, self.net, self.x, self.y, norm="linf")
        for method in ("exact", "minimal-norm", "pgd", "direction"):
            refused("norm must be", fa.robust_curve, self.net, self.x, self.y, radii=[1.0],
                    method=method, rng=rng, direction=[1.0, -1.0], norm="linf")  # fmt: skip
        curve = fa.robust_curve(self.net, self.x, self.y, radii=[1.0])
        assert curve.norm == fa.worst(curve, curve).norm == "l2"

    def test_margins(self):
        """The normalised margin is defined by the L2 norm of what is trained."""
        assert "norm" not in inspect.signature(fa.normalized_margin).parameters

    def test_kkt(self):
        assert "norm" not in inspect.signature(fa.kkt_residual).parameters

    def test_distance(self):
        assert "norm" not in inspect.signature(distance_to_averaging).parameters

    def test_theory(self):
        assert "norm" not in inspect.signature(ProofQuantities).parameters

    def test_to_torch(self):
        assert "norm" not in inspect.signature(fa.BinaryNet.to_torch).parameters

    def test_save_load(self):
        assert "norm" not in inspect.signature(load).parameters
