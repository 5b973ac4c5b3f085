"""Every method with other labels than the default: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg.measures.distance import distance_to_averaging
from featavg.networks import reference
from featavg.theory import ProofQuantities
from support.seam_matrix import (
    SeamMatrix,
    check_radii,
    check_saved_classes,
    fitted,
    multi,
    refused,
    sample_of,
)


class TestLabels(SeamMatrix):
    """Fine labels that clusters share."""

    train = sample_of(fa.MultiCluster(clusters=5, dim=30)).grouped("1,2|2")

    def net(self, readout="argmax", **options):
        return fitted(multi(self.train, readout=readout), self.train, **options)

    def test_train(self):
        """As on points whose clusters are the groups; with all losses in test_grouping."""
        plain = fa.Sample.from_points(self.train.x, self.train.labels, positive=2)
        start = multi(self.train)
        for rule in (fa.GradientDescent(), fa.Adam(), fa.SAM(0.1)):
            first, second = (
                fa.descend(start, s, learning_rate=0.01, steps=20, rule=rule).net
                for s in (self.train, plain)
            )
            np.testing.assert_allclose(first.weights, second.weights, rtol=1e-8, atol=1e-11)

    def test_fast_forward(self):
        net = multi(self.train)
        options = {"learning_rate": 1e-4, "steps": 2000, "record": 2}
        literal = fa.descend(net, self.train, **options)
        leaps = fa.fast_forward(net, self.train, **options, tolerance=1e-3)
        np.testing.assert_allclose(leaps.margins[-1], literal.margins[-1], rtol=0.02)

    def test_exact_radii(self):
        net, x, y = self.net(), self.train.x, self.train.y
        check_radii(net, x, y, fa.exact_radii(net, x, y, jobs=1))

    def test_bracket(self):
        net, x, y = self.net("probability"), self.train.x, self.train.y
        radii = fa.exact_radii(net, x, y, jobs=1)
        assert (radii.lower <= radii.upper).all()
        assert (net.predict(x + radii.perturbations)[radii.upper > 0] != y[radii.upper > 0]).all()

    def test_attacks(self):
        net, x, y = self.net(), self.train.x, self.train.y
        attack = fa.pgd(net, x, y, radius=9.0, rng=np.random.default_rng(0),
                        objective="cross-entropy", fine_labels=self.train.labels)  # fmt: skip
        flipped = net.predict(x + attack.perturbations) != y
        np.testing.assert_array_equal(flipped, attack.success)

    def test_margins(self):
        net = multi(self.train)
        f, own = net.logits(self.train.x), self.train.labels
        points = np.arange(len(own))
        q = f[points, own] - np.where(np.eye(3)[own], -np.inf, f).max(axis=1)
        expected = q.min() / np.linalg.norm(net.weights)
        assert fa.normalized_margin(net, self.train) == pytest.approx(expected)

    def test_kkt(self):
        net = self.net()
        found = fa.kkt_residual(net, self.train)
        plain = fa.Sample.from_points(self.train.x, self.train.labels, positive=2)
        assert found.stationarity == pytest.approx(fa.kkt_residual(net, plain).stationarity)

    def test_distance(self):
        """The averaging network has one output, whatever the fine labels are."""
        averages = reference.averaging(self.train)
        assert distance_to_averaging(averages, self.train).upper < 1e-9

    def test_theory(self):
        run = fa.descend(multi(self.train), self.train, learning_rate=0.01, steps=2)
        refused("fine label for each cluster", ProofQuantities, run)

    @pytest.mark.vision
    def test_to_torch(self):
        import torch

        net = self.net()
        logits = net.to_torch("classes")(torch.tensor(self.train.x)).detach().numpy()
        np.testing.assert_allclose(logits, net.logits(self.train.x))

    def test_save_load(self, tmp_path):
        check_saved_classes(self.net(), np.array([1, 1, 0]), tmp_path)
