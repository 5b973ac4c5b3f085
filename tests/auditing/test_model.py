"""Audits of networks that others have trained."""

from __future__ import annotations

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.auditing.model import audit_model
from featavg.estimators.scaling import Scaling


def test_a_network_of_ours_has_the_same_index_as_a_module(six_clusters):
    rng = np.random.default_rng(0)
    net = fa.BinaryNet.init(six_clusters, width=3, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    trained = fa.descend(net, six_clusters, learning_rate=1e-3, steps=200).net
    module = _module(trained)
    seen = audit_model(module, six_clusters.x, six_clusters.y, six_clusters.cluster)
    assert seen.subclasses == {-1: 3, 1: 3}
    # the package's own index, of centred means in place of centres
    centred = Scaling.of(six_clusters.x).apply(six_clusters.x)
    measured = fa.Sample.from_points(centred, six_clusters.cluster, positive=3)
    assert seen.averaging_index == pytest.approx(fa.averaging_index(trained, measured))
    assert seen.averaging_index > 0.7
    assert seen.cosines.shape == (6, 6)
    one_by_one = _module(fa.BinaryNet(six_clusters.centers))
    assert (
        audit_model(
            one_by_one, six_clusters.x, six_clusters.y, six_clusters.cluster
        ).averaging_index
        < 0.05
    )
    found = audit_model(one_by_one, six_clusters.x, six_clusters.y)
    assert found.subclasses == {-1: 3, 1: 3}


def _module(net):
    from torch import nn, tensor

    hidden = nn.Linear(net.dim, len(net.weights))
    hidden.weight.data, hidden.bias.data = tensor(net.weights), tensor(net.biases)
    last = nn.Linear(len(net.weights), 2, bias=False)
    sign = tensor(net.neuron_signs.astype(float))
    last.weight.data = tensor(np.stack([-sign, sign]))
    return nn.Sequential(hidden, nn.ReLU(), last).double()


def test_layers_can_be_named_and_bad_ones_are_refused(six_clusters):
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(600, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    net.train()
    assert (
        audit_model(net, six_clusters.x, six_clusters.y, six_clusters.cluster, layer="2").layer
        == "2"
    )
    assert net.training
    for arguments, message in (
        ({"layer": "nope"}, "layer must be one of"),
        ({"y": six_clusters.y[:10]}, "equal lengths"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"model": torch.nn.ReLU()}, "a linear layer"),
        ({"model": torch.nn.Linear(600, 2)}, "two linear layers"),
    ):
        given = {"model": net, "X": six_clusters.x, "y": six_clusters.y} | arguments
        with pytest.raises(InputError, match=message):
            audit_model(**given)
