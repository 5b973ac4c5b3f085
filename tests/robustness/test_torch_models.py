from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import featavg as fa
from featavg import InputError
from featavg.networks.activation import LeakyReLU, ReLU
from featavg.robustness.models import as_shallow


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def two_layers(activation=None, *, outputs=3, dim=6):
    return nn.Sequential(nn.Linear(dim, 8), activation or nn.ReLU(), nn.Linear(8, outputs))


def check_same(model, shape=(6,), *, link=lambda outputs: outputs):
    """Compare with the module itself, in double precision."""
    net = as_shallow(model)
    x = np.random.default_rng(1).normal(size=(60, net.dim)) * 2
    with torch.no_grad():
        theirs = model.double()(torch.tensor(x).reshape(60, *shape)).numpy()
    outputs = link(net.outputs(x).T)
    if theirs.shape[1] == 1:
        theirs = np.column_stack([np.zeros(60), theirs])
    np.testing.assert_allclose(outputs, theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())
    assert (net.predict(x) == theirs.argmax(axis=1)).all()
    assert net.labels.tolist() == list(range(theirs.shape[1]))
    return net


def test_linear_relu_linear():
    net = check_same(two_layers())
    assert (len(net.weights), net.activation) == (8, ReLU())


def test_leaky_relu():
    assert check_same(two_layers(nn.LeakyReLU(0.3))).activation == LeakyReLU(0.3)


def test_one_output_is_a_score_against_0():
    assert len(set(check_same(two_layers(outputs=1)).predict(np.eye(6) * 9))) == 2


def test_the_module_is_not_changed():
    model = two_layers()
    model.train()
    as_shallow(model)
    assert model.training
    assert model[0].weight.dtype == torch.float32


def trained_norm(width):
    norm = nn.BatchNorm1d(width)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


@pytest.mark.parametrize(
    "layers",
    [
        [nn.Flatten(), two_layers(), nn.Identity()],
        [nn.Sequential(nn.Sequential(nn.Linear(6, 8)), nn.ReLU()), nn.Dropout(), nn.Linear(8, 2)],
        [trained_norm(6), nn.Linear(6, 8), trained_norm(8), nn.ReLU(), nn.Linear(8, 2)],
        [nn.Linear(6, 8), nn.ReLU(), trained_norm(8), nn.Linear(8, 2), trained_norm(2)],
        [nn.Linear(6, 8), nn.BatchNorm1d(8, affine=False), nn.ReLU(), nn.Linear(8, 4, bias=False)],
        [nn.Linear(6, 5), nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 7), nn.Linear(7, 3)],
        [nn.Linear(6, 3)],
        [nn.ReLU(), nn.Linear(6, 3)],
        [nn.Linear(6, 3), nn.ReLU()],
        [nn.utils.parametrizations.weight_norm(nn.Linear(6, 8)), nn.ReLU(), nn.Linear(8, 2)],
    ],
    ids=lambda layers: "-".join(type(layer).__name__ for layer in layers),
)
def test_chains(layers):
    check_same(nn.Sequential(*layers).eval())


def test_a_layer_alone():
    assert not len(check_same(nn.Linear(6, 3)).weights)


@pytest.mark.parametrize(
    ("last", "link"),
    [(nn.Softmax(dim=1), torch.softmax), (nn.LogSoftmax(dim=-1), torch.log_softmax)],
    ids=["softmax", "log_softmax"],
)
def test_a_final_softmax_does_not_change_the_decision(last, link):
    model = nn.Sequential(*two_layers(), last)
    check_same(model, link=lambda outputs: link(torch.tensor(outputs), 1).numpy())


class Custom(nn.Module):
    """Functions and constants where others have layers."""

    def __init__(self, mean, std, width=6, *, how="flatten"):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("std", torch.as_tensor(std))
        self.hidden, self.out = nn.Linear(width, 8), nn.Linear(8, 3)
        self.how = how

    def forward(self, x):
        x = (x - self.mean) / self.std
        if self.how == "flatten":
            x = torch.flatten(x, 1)
        elif self.how == "view":
            x = x.view(x.size(0), -1)
        elif self.how == "shape":
            x = x.reshape(x.shape[0], -1)
        elif self.how == "number":
            x = x.view(-1, 6)
        x = functional.relu(self.hidden(x))
        x = functional.dropout(x, 0.5, training=self.training)
        return self.out(x)


@pytest.mark.parametrize("how", ["flatten", "view", "shape", "number", "nothing"])
@pytest.mark.parametrize(("mean", "std"), [(0.5, 3.0), (torch.randn(6), torch.rand(1, 6) + 0.5)])
def test_a_normalization_before(how, mean, std):
    check_same(Custom(mean, std, how=how).eval())


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        (torch.randn(3, 1, 1), torch.rand(1, 3, 1, 1) + 0.5),
        (torch.randn(3, 1, 1), torch.rand(3, 2, 4) + 0.5),
        (torch.randn(3, 2, 4), 2.0),
    ],
)
def test_a_normalization_of_images(mean, std):
    check_same(Custom(mean, std, width=24).eval(), (3, 2, 4))
    layers = nn.Sequential(Normalize(mean, std), nn.Flatten(), two_layers(dim=24))
    check_same(layers, (3, 2, 4))


def test_constants_for_rows_are_not_taken_for_constants_for_channels():
    """Only the shape of points tells which coordinates they are for."""
    rows = nn.Sequential(Normalize(torch.randn(4, 1), 2.0), nn.Flatten(), two_layers(dim=48))
    net = as_shallow(rows, (3, 4, 4))
    x = torch.randn(60, 3, 4, 4, dtype=torch.float64)
    with torch.no_grad():
        theirs = rows.double()(x).numpy()
    np.testing.assert_allclose(net.outputs(x.numpy().reshape(60, -1)).T, theirs, atol=1e-12)
    radii = fa.exact_radii(rows, x[:5])
    assert radii.verify(rows, x[:5]).holds
    turned = x[:5] + torch.tensor(radii.perturbations).reshape(5, 3, 4, 4)
    with torch.no_grad():
        assert (rows(turned).argmax(dim=1) != rows(x[:5]).argmax(dim=1)).all()
    for use in (lambda: fa.exact_radii(rows, x[:5].reshape(5, -1)), lambda: as_shallow(rows)):
        with pytest.raises(InputError, match=r"shape \(4, 1\), which may depend on the shape"):
            use()
    with pytest.raises(InputError, match=r"must fit the shape \(4, 3, 4\) of its points"):
        as_shallow(nn.Sequential(Normalize(torch.randn(4, 1), 2.0), *rows[1:]), (4, 3, 4))


class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = mean, std

    def forward(self, x):
        return (x - self.mean) / self.std


class Arithmetic(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 6))
        self.outer = nn.Parameter(torch.randn(8, 2))

    def forward(self, x):
        x = 3 - 2 * x / 4
        x = torch.leaky_relu(x, 0.2) if False else (x @ self.weight.T).relu()
        return torch.add(x @ self.outer, 1.0).mul(0.5)


def test_arithmetic_with_constants():
    check_same(Arithmetic())


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        return self.out(x + functional.relu(self.layer(x)))


class Branching(Residual):
    def forward(self, x):
        return self.out(x) if x.sum() > 0 else self.layer(x)


class Noisy(Residual):
    def forward(self, x):
        return self.out(functional.relu(self.layer(x)) * torch.rand(6))


class Inverse(Residual):
    def forward(self, x):
        return self.out(1 / self.layer(x))


class TwoInputs(Residual):
    def forward(self, x, y):
        return self.out(x)


class TwoResults(Residual):
    def forward(self, x):
        return self.out(x), x


class Transposed(Residual):
    def forward(self, x):
        return self.out(x.T)


def with_changed_forward():
    model = two_layers()
    model[0].forward = lambda x: x[:, :1].repeat(1, 8)
    return model


def with_hook():
    model = two_layers()
    model[1].register_forward_hook(lambda module, inputs, output: output + 1)
    return model


REFUSED = {
    "two hidden layers": (
        lambda: nn.Sequential(two_layers(), nn.ReLU(), nn.Linear(3, 2)),
        "one hidden layer, .* this Sequential has 2",
    ),
    "tanh": (lambda: two_layers(nn.Tanh()), r"this Sequential has Tanh\(\)"),
    "gelu": (lambda: two_layers(nn.GELU()), "has GELU"),
    "prelu": (lambda: two_layers(nn.PReLU()), "has PReLU"),
    "a negative slope": (lambda: two_layers(nn.LeakyReLU(-0.5)), r"LeakyReLU\(negative_slope=-0.5"),
    "convolution": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()), "has Conv2d"),
    "sigmoid": (lambda: nn.Sequential(two_layers(outputs=1), nn.Sigmoid()), "has Sigmoid"),
    "dropout": (lambda: two_layers(nn.Dropout()), r"its Dropout .* call model.eval\(\) first"),
    "batch norm": (lambda: nn.Sequential(nn.BatchNorm1d(6), two_layers()), "its BatchNorm1d comp"),
    "functional dropout": (lambda: Custom(0.0, 1.0), "this Custom has dropout"),
    "batch statistics": (
        lambda: nn.Sequential(nn.BatchNorm1d(6, track_running_stats=False), two_layers()).eval(),
        "has BatchNorm1d",
    ),
    "no linear layer": (lambda: nn.Sequential(nn.ReLU()), "a Linear layer; this Sequential has no"),
    "softmax in between": (
        lambda: nn.Sequential(nn.Linear(6, 6), nn.Softmax(dim=1), two_layers()),
        "has Linear",
    ),
    "softmax of points": (lambda: nn.Sequential(two_layers(), nn.Softmax(dim=0)), "has Softmax"),
    "softmax of one": (
        lambda: nn.Sequential(two_layers(outputs=1), nn.Softmax(dim=1)),
        "a softmax needs at least two outputs",
    ),
    "flattened points": (lambda: nn.Sequential(nn.Flatten(0), two_layers()), "has Flatten"),
    "layers that do not fit": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(4, 2)),
        "fit each other; a Linear layer of this Sequential takes 4 coordinates and gets 5",
    ),
    "a constant that does not fit": (
        lambda: Custom(torch.zeros(5), 1.0).eval(),
        r"fit the 6 coordinates of its points; this Custom has one of the shape \(5,\)",
    ),
    "a column of constants": (
        lambda: nn.Sequential(nn.Flatten(), Normalize(torch.zeros(6, 1), 1.0), two_layers()),
        r"one of the shape \(6, 1\)",
    ),
    "not initialized": (lambda: nn.Sequential(nn.LazyLinear(3)), "are not initialized"),
    "no device": (lambda: two_layers().to("meta"), "cannot be traced"),
    "nan": (
        lambda: nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Nan()),
        "must be finite; got nan",
    ),
    "residual": (Residual, "this Residual has add"),
    "control flow": (Branching, "this Branching cannot be traced by torch.fx"),
    "noise": (Noisy, "the scores of Noisy are others"),
    "inverse": (Inverse, "this Inverse has truediv"),
    "two inputs": (TwoInputs, "more than one input"),
    "two results": (TwoResults, "another result"),
    "transposed": (Transposed, "has getattr"),
    "another forward": (with_changed_forward, "has Linear"),
    "hook": (with_hook, "forward hooks, .* the ReLU of this Sequential has"),
    "recurrent": (lambda: nn.LSTM(6, 2), "this LSTM"),
}


class Nan(nn.Module):
    def forward(self, weight):
        return weight * float("nan")


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    make, reason = REFUSED[case]
    with pytest.raises(InputError, match=reason) as error:
        as_shallow(make())
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_what_a_module_computes_is_compared(monkeypatch):
    model = two_layers()
    assert as_shallow(model)
    monkeypatch.setattr(nn.Sequential, "__call__", lambda self, x: self.forward(x) + 1)
    with pytest.raises(InputError, match="the scores of Sequential are others"):
        as_shallow(model)
