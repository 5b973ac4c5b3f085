"""By what networks are told apart where results are saved."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from featavg import InputError
from featavg.vision.curves import robust_curves
from featavg.vision.identity import (
    behaviour,
    fingerprint,
    model_fingerprint,
    rounded,
    summary,
    tolerance,
)
from featavg.vision.recipes import Recipe
from featavg.vision.training import train
from support.train_until_killed import same_weights

pytestmark = pytest.mark.usefixtures("one_thread")


class Net(nn.Module):
    """What is in no state_dict: a function, a scale, a count of calls."""

    def __init__(self, activation=torch.relu, scale=1.0):
        super().__init__()
        self.activation, self.scale, self.calls = activation, scale, 0
        self.first, self.last = nn.Linear(16, 8), nn.Linear(8, 3)

    def forward(self, x):
        self.calls += 1
        return self.scale * self.last(self.activation(self.first(x.flatten(1))))


def net(**options):
    torch.manual_seed(0)
    return Net(**options)


@pytest.fixture
def images(rng):
    return torch.from_numpy(rng.random((4, 1, 4, 4))).float()


def difference(one, other):
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_does_not_change_what_a_network_is_taken_for(dtype, rng):
    logits = torch.from_numpy(rng.normal(size=(8, 10)))
    known, allowed = summary(logits), tolerance(dtype)
    same = []
    for _ in range(50):
        error = torch.from_numpy(rng.normal(size=(8, 10)))
        other = summary((logits * (1 + torch.finfo(dtype).eps * error)).to(dtype))
        assert difference(other, known) < allowed
        same.append(rounded(other, dtype) == rounded(known, dtype))
    assert np.mean(same) > (0.9 if dtype == torch.float32 else 0.4)
    assert difference(summary(2 * logits), known) > allowed
    assert difference(summary(logits.flip(1)), known) > allowed
    assert str(rounded([-1e-9], dtype)) == "[0.0]"


def test_each_column_counts_equally(rng):
    columns = torch.from_numpy(rng.random((3, 2))) * torch.tensor([3000.0, 1.0])
    changed = columns.clone()
    changed[:, 1] **= 2
    assert summary(changed) != summary(columns)
    assert summary(torch.zeros(3, 2)) == [0.0] * len(summary(columns))


def test_networks_of_equal_weights_are_told_apart_by_outputs_and_slopes(images):
    plain = net()
    for other in (net(activation=torch.sin), net(scale=2.0)):
        assert model_fingerprint(other) == model_fingerprint(plain)
        assert behaviour(other, images) != behaviour(plain, images)
    assert behaviour(net(), images) == behaviour(plain, images)

    def without_slopes(x):
        return plain(x).detach()

    def straight_through(x):
        """Equal outputs, but gradients as if the images were squared."""
        return plain(x).detach() + plain(x**2) - plain(x**2).detach()

    assert len(behaviour(without_slopes, images)) < len(behaviour(plain, images))
    torch.testing.assert_close(straight_through(images), plain(images))
    assert behaviour(straight_through, images) != behaviour(plain, images)


def test_networks_that_are_random_look_the_same_twice(images):
    def noisy(x):
        return nn.functional.dropout(plain(x), 0.5, training=True)

    plain = net()
    state = torch.random.get_rng_state()
    assert behaviour(noisy, images) == behaviour(noisy, images) != []
    assert torch.equal(torch.random.get_rng_state(), state)
    own = torch.Generator().manual_seed(3)
    assert behaviour(lambda x: plain(x) + torch.rand(1, generator=own), images) == []


def test_networks_may_change_what_they_are_given(images):
    def in_place(x):
        x -= 0.5
        return plain(x)

    plain, before = net(), images.clone()
    assert behaviour(in_place, images) == behaviour(lambda x: plain(x - 0.5), images)
    assert torch.equal(images, before)


def test_counts_and_buffers_that_are_not_saved(images):
    plain = net()
    before = model_fingerprint(plain)
    plain(images)
    assert model_fingerprint(plain) == before  # a count of calls is no part of the function
    plain.register_buffer("mask", torch.ones(2), persistent=False)
    first = model_fingerprint(plain)
    plain.mask[0] = 0
    assert len({before, first, model_fingerprint(plain)}) == 3
    dense = torch.eye(3)
    assert fingerprint(dense.to_sparse()) == fingerprint(dense) != fingerprint(2 * dense)


def test_a_training_of_another_function_is_not_resumed(tmp_path, rng):
    data = rng.integers(256, size=(12, 1, 4, 4), dtype=np.uint8), np.arange(12) % 3
    recipe, path = Recipe(epochs=1, batch=4), tmp_path / "net.pt"
    options = {"seed": 0, "accelerator": "cpu", "checkpoint": path}
    train(net(), *data, recipe, **options)
    used = net()
    used(torch.zeros(1, 1, 4, 4))
    assert train(used, *data, recipe, **options).resumed_from == 1
    for other in (net(activation=torch.sin), net(scale=2.0)):
        with pytest.raises(InputError, match="was made with another network"):
            train(other, *data, recipe, **options)


class Settling(Net):
    """A network that takes its scale from the first images that it is shown."""

    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            self.scale = float(x.detach().mean())
        return super().forward(x)


def test_a_checkpoint_does_not_change_what_is_trained(tmp_path, rng):
    data = rng.integers(256, size=(12, 1, 4, 4), dtype=np.uint8), np.arange(12) % 3
    recipe = Recipe(epochs=1, batch=4)
    torch.manual_seed(0)
    start = Settling()
    with_one, without = (
        train(start, *data, recipe, seed=0, accelerator="cpu", checkpoint=path).model
        for path in (tmp_path / "net.pt", None)
    )
    assert same_weights(with_one, without)


def test_saved_attacks_leave_a_network_in_training_as_it_is(tmp_path, rng):
    start = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 3))
    images, labels = rng.integers(256, size=(6, 1, 4, 4), dtype=np.uint8), np.arange(6) % 3
    start.train()
    before = {name: value.clone() for name, value in start.state_dict().items()}
    options = {"radii": [0.1], "pgd_steps": 2, "steps": 2}
    alone = robust_curves(start, images, labels, **options)
    for _ in range(2):
        saved = robust_curves(start, images, labels, **options, folder=tmp_path)
        np.testing.assert_array_equal(saved.norms["worst"], alone.norms["worst"])
    assert len(list(tmp_path.iterdir())) == 1
    assert all(torch.equal(before[name], value) for name, value in start.state_dict().items())
