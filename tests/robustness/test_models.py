from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from featavg import InputError
from featavg.networks.activation import LeakyReLU
from featavg.networks.shallow import ShallowNet
from featavg.robustness.models import as_shallow
from featavg.robustness.rewriting import check_predictions, check_scores, linear_net, probes


def some_net(**options):
    rng = np.random.default_rng(0)
    sizes = {"W": (6, 4), "b": 6, "A": (3, 6), "c": 3}
    return ShallowNet(*(rng.normal(size=size) for size in sizes.values()), **options)


class Rewritable:
    def __init__(self, net, predict=None):
        self.net = net
        if predict is not None:
            self.predict = predict

    def to_shallow(self):
        return self.net


def test_a_shallow_net_is_itself():
    net = some_net()
    assert as_shallow(net) is net


def test_a_shallow_net_has_no_subclasses():
    with pytest.raises(TypeError, match="cannot be subclassed, because radii would not follow"):
        type("Mine", (ShallowNet,), {"outputs": lambda self, x: 0})


def test_to_shallow_is_called_and_compared_with_predict():
    net = some_net(labels=["a", "b", "c"])
    assert as_shallow(Rewritable(net)) is net
    assert as_shallow(Rewritable(net, net.predict)) is net
    other = some_net(labels=["b", "a", "c"])
    with pytest.raises(InputError, match="the predictions of Rewritable are others"):
        as_shallow(Rewritable(net, other.predict))
    with pytest.raises(InputError, match="to_shallow must return a ShallowNet; that of Rewritable"):
        as_shallow(Rewritable("net"))


@pytest.mark.parametrize(
    ("model", "got"),
    [
        ("model.pkl", "got 'model.pkl'"),
        (None, "got None"),
        (ShallowNet, "got the class ShallowNet itself"),
        (Rewritable, "got the class Rewritable itself"),
        (lambda x: x, "got a function"),
        (np.eye(3), "got a ndarray"),
        ([1.0] * 100, r"\.\.\.\.$"),
    ],
)
def test_everything_else_is_refused_with_what_is_accepted(model, got):
    accepted = "model must be a network of one hidden ReLU layer: .*MLPClassifier.*PyTorch.*; "
    with pytest.raises(InputError, match=accepted + ".*" + got):
        as_shallow(model)


@pytest.mark.parametrize("net", [some_net(), some_net(activation=LeakyReLU(3.0))], ids=repr)
def test_scores_are_compared_at_the_precision_of_their_terms(net):
    x = probes(net)
    outputs = net.outputs(x).T
    check_scores(net, x, outputs, "Model")
    check_scores(net, x, outputs * (1 + 1e-13), "Model")
    with pytest.raises(InputError, match="the scores of Model are others"):
        check_scores(net, x, outputs * (1 + 1e-7), "Model")
    with pytest.raises(InputError, match="the scores"):
        check_scores(net, x, outputs[:, :2], "Model")


def test_predictions_may_differ_at_ties_only():
    net = linear_net([[1.0, -1.0]], [0.0], ["a", "b"])
    x = np.array([[1.0, 1.0], [1.0 + 1e-15, 1.0], [1.0, 0.0], [-1.0, 2.0]])
    check_predictions(net, x, ["b", "a", "b", "a"], "Model")
    with pytest.raises(InputError, match="the predictions of Model"):
        check_predictions(net, x, ["b", "a", "a", "a"], "Model")
    with pytest.raises(InputError, match="the predictions"):
        check_predictions(net, x, [1, 0, 1, 0], "Model")
    with pytest.raises(InputError, match=r"one label for each point; Model predicts .*\(4, 2\)"):
        check_predictions(net, x, np.zeros((4, 2)), "Model")


def test_probes_see_both_sides_of_neurons_that_are_far_away():
    scale, mean = np.array([1e-3, 1.0, 10.0, 1e4]), np.array([5.0, 1e3, -1e6, 1e7])
    net = some_net().after_affine(1 / scale, -mean / scale)
    z = net.weights @ probes(net).T + net.biases[:, None]
    assert ((z > 0).any(axis=1) & (z < 0).any(axis=1)).mean() > 0.5


def test_probes_of_networks_without_weights():
    net = linear_net(np.zeros((2, 3)), [0.0, 1.0], None)
    assert np.isfinite(probes(net)).all()
    assert as_shallow(Rewritable(net, net.predict)).predict(np.eye(3)).tolist() == [1, 1, 1]


def test_neither_scikit_learn_nor_pytorch_is_imported():
    code = (
        "import sys, featavg; from featavg.networks.shallow import ShallowNet; "
        "from featavg.robustness.models import as_shallow; "
        "as_shallow(ShallowNet([[1.0]], [0.0], [[1.0]], [0.0])); "
        "assert not {'sklearn', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
