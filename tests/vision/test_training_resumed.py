"""Training of image classifiers that goes on after an interruption, and being killed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from featavg import InputError
from featavg.seals import seal
from featavg.vision.models import ResNet18, SmallCNN
from featavg.vision.supplied_labels import SuppliedLabels
from featavg.vision.training import _Run, train
from support import TESTS
from support import train_until_killed as small
from support.train_until_killed import same_weights

pytestmark = pytest.mark.usefixtures("one_thread")


def run_small(path, recipe=small.RECIPE, **options):
    arguments = {"seed": 3, "checkpoint": path, "accelerator": "cpu", **options}
    return train(small.network(), *small.data(), recipe, **arguments)


@pytest.fixture(scope="module")
def uninterrupted():
    return run_small(None)


class DropoutNet(nn.Sequential):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__(nn.Flatten(), nn.Linear(432, 20), nn.Dropout(), nn.Linear(20, 2))


@pytest.mark.parametrize("make", [small.network, DropoutNet])
@pytest.mark.parametrize("schedule", ["cosine", "one-cycle", "loss-based"])
def test_resumed_equals_uninterrupted_bit_for_bit(make, schedule, tmp_path, monkeypatch):
    plain = {"momentum": 0, "weight_decay": 0} if schedule == "loss-based" else {}
    recipe = replace(small.RECIPE, schedule=schedule, learning_rate=0.02, **plain)
    path = tmp_path / "a" / "net.pt"
    arguments = {"seed": 3, "accelerator": "cpu"}
    whole = train(make(), *small.data(), recipe, **arguments)
    with monkeypatch.context() as patched:
        one_epoch = _Run.one_epoch
        patched.setattr(_Run, "one_epoch", lambda run, r: _stop_at(3, run, r, one_epoch))
        with pytest.raises(KeyboardInterrupt):
            train(make(), *small.data(), recipe, checkpoint=path, **arguments)
    net = make()
    torch.manual_seed(1)  # global state is nothing to rely on
    resumed = train(net, *small.data(), recipe, checkpoint=path, **arguments)
    assert resumed.resumed_from == 3
    assert resumed.log_losses == whole.log_losses
    assert same_weights(resumed.model, whole.model)


@pytest.mark.parametrize("adversarial_radius", [0.0, 0.4])
def test_adam_on_partly_labelled_images_resumes_bit_for_bit(
    adversarial_radius, tmp_path, monkeypatch
):
    images, sides = small.data()
    known = np.arange(len(sides)) % 3 == 0
    labels = SuppliedLabels(2 * sides + known, known, classes=4)
    net = SmallCNN(3, classes=4, size=12, width=2, rng=np.random.default_rng(8))
    options = {"optimizer": "adam", "adversarial_radius": adversarial_radius}
    recipe = replace(small.RECIPE, learning_rate=0.01, adversarial_steps=2, **options)
    arguments = (net, images, labels, recipe)
    whole = train(*arguments, seed=3, accelerator="cpu")
    path = tmp_path / "net.pt"
    with monkeypatch.context() as patched:
        one_epoch = _Run.one_epoch
        patched.setattr(_Run, "one_epoch", lambda run, r: _stop_at(3, run, r, one_epoch))
        with pytest.raises(KeyboardInterrupt):
            train(*arguments, seed=3, accelerator="cpu", checkpoint=path)
    torch.manual_seed(1)
    resumed = train(*arguments, seed=3, accelerator="cpu", checkpoint=path)
    assert resumed.resumed_from == 3
    assert resumed.log_losses == whole.log_losses
    assert same_weights(resumed.model, whole.model)
    others = SuppliedLabels(2 * sides + known, ~known, classes=4)
    with pytest.raises(InputError, match="made with another data"):
        train(net, images, others, recipe, seed=3, accelerator="cpu", checkpoint=path)


@pytest.mark.parametrize(
    ("schedule", "continues"), [("constant", True), ("loss-based", True), ("cosine", False)]
)
def test_more_epochs_continue_a_training_whose_schedule_does_not_count_them(
    schedule, continues, tmp_path
):
    recipe = replace(small.RECIPE, schedule=schedule, epochs=4, momentum=0, weight_decay=0)
    path, arguments = tmp_path / "net.pt", {"seed": 3, "accelerator": "cpu"}
    whole = train(small.network(), *small.data(), recipe, **arguments)
    train(small.network(), *small.data(), replace(recipe, epochs=2), checkpoint=path, **arguments)
    if not continues:
        with pytest.raises(InputError, match="another recipe"):
            train(small.network(), *small.data(), recipe, checkpoint=path, **arguments)
        return
    longer = train(small.network(), *small.data(), recipe, checkpoint=path, **arguments)
    assert longer.resumed_from == 2
    assert same_weights(longer.model, whole.model)
    with pytest.raises(InputError, match="epochs must be at least those of the checkpoint, 4"):
        train(
            small.network(), *small.data(), replace(recipe, epochs=2), checkpoint=path, **arguments
        )


def _stop_at(epoch, run, reporter, one_epoch):
    if run.epoch == epoch:
        raise KeyboardInterrupt
    one_epoch(run, reporter)


def start(path, **environment):
    command = [sys.executable, "-m", small.__name__, path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, text=True, env=environment, cwd=TESTS)


@pytest.mark.faults
def test_killed_at_any_step_and_started_again_the_weights_are_the_same(
    tmp_path, uninterrupted, rng
):
    path = tmp_path / "net.pt"
    for _ in range(3):
        with start(path) as process:
            for _ in range(rng.integers(3, 9)):  # an epoch has 5 steps
                process.stdout.readline()
            process.kill()
        assert process.returncode == -9
    done = run_small(path)
    assert done.resumed_from >= 1
    assert same_weights(done.model, uninterrupted.model)


@pytest.mark.faults
@pytest.mark.parametrize(("moment", "epochs"), [("inside", 1), ("before", 1), ("after", 2)])
def test_killed_while_a_checkpoint_is_written(moment, epochs, tmp_path, uninterrupted):
    path = tmp_path / "net.pt"
    with start(path, KILL=moment) as process:
        process.stdout.read()
    assert process.returncode == -9
    assert len(list(tmp_path.iterdir())) == (1 if moment == "after" else 2)
    done = run_small(path)
    assert done.resumed_from == epochs
    assert same_weights(done.model, uninterrupted.model)
    assert list(tmp_path.iterdir()) == [path]  # what the killed one left is gone


def test_a_finished_run_is_only_read(tmp_path, uninterrupted):
    path = tmp_path / "net.pt"
    run_small(path)
    before = path.read_bytes()
    again = run_small(path)
    assert again.resumed_from == small.RECIPE.epochs
    assert again.log_losses == uninterrupted.log_losses
    assert same_weights(again.model, uninterrupted.model)
    assert path.read_bytes() == before


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    path = tmp_path / "net.pt"
    recipe = replace(small.RECIPE, epochs=1)
    run_small(path, recipe)
    before = path.read_bytes()
    images, labels = small.data()
    other_images = images.copy()
    other_images[5, 1, 2, 3] ^= 1
    other = ResNet18(width=2, classes=2, rng=np.random.default_rng(9))
    options = {"seed": 3, "checkpoint": path, "accelerator": "cpu"}
    for arguments, name in [
        ((small.network(), images, labels, replace(recipe, momentum=0.8)), "recipe"),
        ((small.network(), other_images, labels, recipe), "data"),
        ((small.network(), images, 1 - labels, recipe), "data"),
        ((other, images, labels, recipe), "network"),
    ]:
        with pytest.raises(InputError, match=f"net.pt was made with another {name}; delete"):
            train(*arguments, **options)
    with pytest.raises(InputError, match="made with another seed"):
        run_small(path, recipe, seed=4)
    assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_named_and_refused(tmp_path):
    path = tmp_path / "net.pt"
    recipe = replace(small.RECIPE, epochs=1)
    run_small(path, recipe)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4  # in the middle of a weight
    code = tmp_path / "code.pt"
    torch.save({"format": Path}, code)  # not a tensor: could run code
    for content in (b"", b"hello", whole[:-300], bytes(flipped), code.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(
            InputError, match="must be a complete checkpoint .*net.pt cannot be read"
        ):
            run_small(path, recipe)
        assert path.read_bytes() == content
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="must be a complete checkpoint .*net.pt cannot be read"):
        run_small(path, recipe)
    path.write_bytes(whole)
    assert run_small(path, recipe).resumed_from == 1


CHANGES = {
    "epoch must be a whole number": {"epoch": "x"},
    "epoch must be a whole number of at least 0": {"epoch": -1},
    "its numbers of epochs differ": {"epoch": 0},
    "its log_losses are not numbers": {"log_losses": "x"},
    "its accuracies are not numbers": {"accuracies": ["x"]},
    "seconds must be": {"seconds": "long"},
    "its model is not a state": {"model": 3},
    "it has another format": {"format": "featavg training 1"},
    "RuntimeError": {"model": {}},
    "KeyError": {"optimizer": {}},
}


@pytest.mark.parametrize("message", CHANGES)
def test_a_checkpoint_whose_parts_have_other_types_is_refused(message, tmp_path):
    path, recipe = tmp_path / "net.pt", replace(small.RECIPE, epochs=1)
    run_small(path, recipe)
    buffer = io.BytesIO()
    torch.save(torch.load(path, weights_only=True) | CHANGES[message], buffer)
    seal(buffer)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match=rf"net.pt cannot be read \(.*{message}"):
        run_small(path, recipe)


def test_a_checkpoint_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "net.pt"):
        with pytest.raises(InputError, match="checkpoint must be a file that can be written"):
            run_small(path)


def test_mixed_precision_resumes(tmp_path, monkeypatch):
    """On a CPU it is refused as slow, but works: as much as can be tried without a GPU."""
    recipe = replace(small.RECIPE, epochs=2, learning_rate=0.01, precision="bf16-mixed")
    fabric = partial(Fabric, accelerator="cpu", devices=1, precision=recipe.precision)
    monkeypatch.setattr("featavg.vision.training.launched_fabric", lambda *_: fabric())
    whole = run_small(None, recipe)
    path = tmp_path / "net.pt"
    one_epoch = _Run.one_epoch
    with monkeypatch.context() as patched:
        patched.setattr(_Run, "one_epoch", lambda run, r: _stop_at(1, run, r, one_epoch))
        with pytest.raises(KeyboardInterrupt):
            run_small(path, recipe)
    resumed = run_small(path, recipe)
    assert resumed.resumed_from == 1
    assert same_weights(resumed.model, whole.model)
    assert all(parameter.dtype == torch.float32 for parameter in resumed.model.parameters())
