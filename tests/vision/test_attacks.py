"""Attacks on image classifiers: PGD, minimal norms, curves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from featavg import InputError
from featavg.vision.adversarial import perturbed
from featavg.vision.attacks import pgd_l2
from featavg.vision.curves import robust_curves
from featavg.vision.evaluation import evaluating, outputs
from featavg.vision.minimal import minimal_norms
from featavg.vision.objectives import OBJECTIVES, TARGETED, wrong
from featavg.vision.projection import nearest_in_half_space
from featavg.vision.target import Target
from support.blob_images import linear

RADII = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.7])

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def fine_curves(fine, held_out):
    return robust_curves(fine, *held_out, radii=RADII, pgd_steps=15, steps=50)


def minimal_l2(net, images, labels, objective="readout", positive=None, steps=100, starts=()):
    """The minimal-norm attack alone, with runs of two lengths of steps."""
    batch = Target.of(net, images, labels, positive).batch(0, len(labels))
    batch = batch.aimed_at(0) if objective == TARGETED else batch
    given = [torch.from_numpy(start).to(batch.x) for start in starts]
    with evaluating(net):
        best = minimal_norms(batch, objective, steps, given, (1.0, 2.0))
    return SimpleNamespace(**best.arrays())


def decision_is_wrong(net, images, labels, classes=10) -> np.ndarray:
    positive = torch.arange(classes) < classes // 2
    return wrong(outputs(net, images), torch.as_tensor(labels), positive).numpy()


# against what is known exactly


def test_minimal_norm_of_a_linear_network_is_the_distance_to_its_boundary(rng):
    w = torch.from_numpy(rng.standard_normal((2, 48))).float()
    net = linear(w, torch.tensor([0.1, -0.1]))
    x = torch.from_numpy(0.5 + 0.1 * rng.standard_normal((40, 3, 4, 4))).float()
    logits = net(x).detach()
    labels = logits.argmax(1)
    signed = (logits[:, 0] - logits[:, 1]) / (w[0] - w[1]).norm()
    nearest = x.flatten(1) - signed[:, None] * (w[0] - w[1]) / (w[0] - w[1]).norm()
    assert nearest.min() >= 0  # the box is not in the way
    assert nearest.max() <= 1
    exact = signed.abs().numpy()
    norms = minimal_l2(net, x, labels, steps=30).norms
    assert (norms >= exact * (1 - 1e-5)).all()
    assert norms == pytest.approx(exact, rel=0.01)
    for factor, robust in ((0.98, True), (1.02, False)):
        for i in range(3):
            attack = pgd_l2(net, x[i : i + 1], labels[i : i + 1], radii=factor * exact[i])
            assert attack.robust.item() == robust


def test_minimal_norm_of_a_linear_network_in_the_box(rng):
    # pixels near 0 and 1: the nearest point of the half-space in the box is known
    w = torch.from_numpy(rng.standard_normal((2, 36)))
    net = linear(w, torch.zeros(2, dtype=torch.float64)).double()
    x = torch.from_numpy(rng.integers(2, size=(30, 1, 6, 6)) * 0.96 + 0.02)
    logits = net(x).detach()
    labels = logits.argmax(1)
    y = torch.where(labels == 0, 1.0, -1.0)[:, None]
    n = -y * (w[0] - w[1])
    margins = (logits[:, 0] - logits[:, 1]).abs()
    exact = nearest_in_half_space(n, x.flatten(1), margins).norm(dim=1).numpy()
    unbounded = (margins / (w[0] - w[1]).norm()).numpy()
    assert (exact > 1.1 * unbounded).mean() > 0.3  # the box is in the way
    norms = minimal_l2(net, x, labels, steps=60).norms
    assert (norms >= exact * (1 - 1e-9)).all()
    assert norms == pytest.approx(exact, rel=0.01)


def test_a_linear_network_of_many_classes_is_attacked_through_its_sides(rng):
    # the nearest other class is on the same side
    w = torch.eye(4)[:, :4] * 20
    net = linear(w, torch.zeros(4))
    x = torch.tensor([0.7, 0.65, 0.45, 0.3]).reshape(1, 1, 2, 2)
    own = pgd_l2(net, x, [0], radii=[0.1], objective="cross-entropy", full=True)
    assert own.last_own.item()
    assert not own.last.item()
    assert own.robust.item()
    exact = minimize(
        lambda d: d @ d,
        np.array([-0.2, -0.2, 0.2, 0.2]),
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda d: float(_sides(20 * (x.numpy().ravel() + d)))},
        options={"ftol": 1e-14},
    )
    found = minimal_l2(net, x, [0])
    assert found.norms[0] == pytest.approx(np.sqrt(exact.fun), rel=1e-3)


def _sides(logits: np.ndarray) -> float:
    return np.logaddexp(*logits[:2]) - np.logaddexp(*logits[2:])


# what every attack has to keep


@pytest.mark.parametrize("name", [*OBJECTIVES, TARGETED])
def test_what_is_found_is_what_is_claimed(name, fine, held_out):
    images, labels = held_out[0][:50], held_out[1][:50]
    x = torch.from_numpy(images).float() / 255
    right = ~decision_is_wrong(fine, x, labels)
    pgd = pgd_l2(fine, images, labels, radii=RADII[[1, 4]], objective=name, steps=10, restarts=2)
    minimal = minimal_l2(fine, images, labels, objective=name, steps=30, starts=[pgd.adversarial])
    assert (minimal.norms <= pgd.norms).all()
    for attack in (pgd, minimal):
        assert attack.adversarial.min() >= 0
        assert attack.adversarial.max() <= 1
        moved = attack.adversarial.astype(np.float64) - x.numpy().astype(np.float64)
        norms = np.linalg.norm(moved.reshape(50, -1), axis=1)
        found = np.isfinite(attack.norms)
        assert norms[found] == pytest.approx(attack.norms[found], rel=1e-12)
        assert (norms[~found] == 0).all()
        assert ((attack.norms == 0) == ~right).all()
        # one at a time, where they were found in a batch
        adversarial = torch.from_numpy(attack.adversarial)
        for i in range(50):
            seen = decision_is_wrong(fine, adversarial[i : i + 1], labels[i : i + 1])[0]
            assert seen == found[i]
    assert (pgd.norms[np.isfinite(pgd.norms)] <= RADII[4]).all()
    assert name == "cross-entropy" or found.all()  # it may end in a wrong class of the right side
    assert pgd.last is None


def test_targets_are_gone_through_by_their_logits(fine, held_out):
    batch = Target.of(fine, *held_out, [0, 1, 7]).batch(0, 30)
    logits, positive = batch.logits(batch.x), batch.positive
    aims = torch.stack([batch.aimed_at(rank).aims for rank in range(batch.most_aims)], 1)
    assert aims.shape == (30, 7)
    for i in range(30):
        other = torch.nonzero(positive != positive[batch.labels[i]])[:, 0]
        order = other[logits[i, other].argsort(descending=True)].tolist()
        assert aims[i].tolist() == (order * 7)[:7]
    part = batch.aimed_at(1).part(torch.tensor([3, 5]))
    assert part.aims.tolist() == aims[[3, 5], 1].tolist()


def test_targeted_attacks_add_to_the_worst(fine, held_out):
    images, labels = held_out[0][:40], held_out[1][:40]
    both = robust_curves(
        fine, images, labels, radii=RADII, objectives=("readout", TARGETED), pgd_steps=15, steps=50
    )
    assert set(both.curves) == {"readout", TARGETED, "worst"}
    assert (both.norms["worst"] <= both.norms[TARGETED]).all()
    # towards one class at a time it is weaker for some images, and nearly as strong for most
    right = both.norms["worst"] > 0
    ratios = both.norms[TARGETED][right] / both.norms["worst"][right]
    assert np.median(ratios) < 1.02


def test_a_whole_run_at_the_radius_zero_and_beyond(fine, held_out):
    images, labels = held_out[0][:30], held_out[1][:30]
    pgd = pgd_l2(fine, images, labels, radii=[0.4, 0.0], steps=5, full=True, batch=20)
    logits = outputs(fine, images)
    assert pgd.radii.tolist() == [0.0, 0.4]
    assert (pgd.last[:, 0] == decision_is_wrong(fine, images, labels)).all()
    assert (pgd.last_own[:, 0] == (logits.argmax(1).numpy() != labels)).all()
    assert (pgd.last <= ~pgd.robust).all()
    assert pgd.last[:, 1].any()


def test_the_same_seed_gives_the_same_and_nothing_is_left_changed(fine, held_out):
    images, labels = held_out[0][:20], held_out[1][:20]
    state = torch.random.get_rng_state()
    fine.zero_grad()
    fine.train()
    first, again = (
        pgd_l2(fine, images, labels, radii=0.4, steps=4, seed=s, batch=8) for s in (3, 3)
    )
    other = pgd_l2(fine, images, labels, radii=0.4, steps=4, seed=4, batch=8)
    assert fine.training
    fine.eval()
    assert np.array_equal(first.adversarial, again.adversarial)
    assert not np.array_equal(first.adversarial, other.adversarial)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(parameter.grad is None for parameter in fine.parameters())


def test_any_classes_can_be_positive(rng):
    w = torch.from_numpy(rng.standard_normal((4, 36)))
    x = torch.from_numpy(0.5 + 0.1 * rng.standard_normal((20, 1, 6, 6)))
    order = [2, 0, 3, 1]
    zero = torch.zeros(4, dtype=torch.float64)
    net, shuffled = linear(w, zero).double(), linear(w[order], zero).double()
    labels = net(x).argmax(1)
    moved = torch.tensor([order.index(int(label)) for label in labels])
    first = minimal_l2(net, x, labels, steps=20, objective="cross-entropy")
    second = minimal_l2(shuffled, x, moved, steps=20, objective="cross-entropy", positive=[1, 3])
    assert np.isfinite(first.norms).any()
    assert first.norms == pytest.approx(second.norms, rel=1e-6)


# curves


def test_the_worst_is_at_most_each_objective_and_curves_never_rise(fine_curves):
    curves = fine_curves.curves
    assert set(curves) == {*OBJECTIVES, "worst"}
    for name in OBJECTIVES:
        assert (fine_curves.norms["worst"] <= fine_curves.norms[name]).all()
        assert (fine_curves.norms[name] <= fine_curves.pgd[name]).all()
        assert (fine_curves.worst.accuracy <= curves[name].accuracy).all()
    for curve in curves.values():
        assert (np.diff(curve.accuracy) <= 0).all()
    assert curves["worst"].accuracy[0] > 0.8
    assert curves["worst"].accuracy[-1] < 0.1
    assert "half radius" in repr(fine_curves)


def test_the_own_cross_entropy_looks_more_robust_than_the_worst(fine_curves):
    plain, worst = 1 - fine_curves.last.mean(axis=0), fine_curves.worst.accuracy
    own = 1 - fine_curves.last_own.mean(axis=0)
    assert (own <= plain).all()  # every wrong side is a wrong class
    assert (plain >= worst).all()
    assert (plain - worst).max() > 0.03


def test_two_logits_have_one_objective(coarse, held_out):
    images, labels = held_out[0][:30], held_out[1][:30] // 5
    curves = robust_curves(coarse, images, labels, radii=RADII[:3], pgd_steps=10, steps=20)
    assert set(curves.curves) == {"readout", "worst"}
    same = [
        minimal_l2(coarse, images, labels, objective=name, steps=20).norms
        for name in ("readout", "cross-entropy")
    ]
    assert same[0] == pytest.approx(same[1], rel=0.02)


def test_minimal_norms_hold_against_pgd_with_many_restarts(fine, held_out, fine_curves):
    pgd = pgd_l2(fine, *held_out, radii=RADII, steps=40, restarts=2, seed=9)
    assert (fine_curves.worst.accuracy <= pgd.robust.mean(0) + 0.01).all()


@pytest.mark.parametrize("classes", [2, 10])
def test_at_least_as_strong_as_foolbox_and_art(classes, request, held_out):
    from support import image_attack_library as library

    net = request.getfixturevalue("fine" if classes == 10 else "coarse")
    images, fine_labels = held_out
    labels = fine_labels if classes == 10 else fine_labels // 5
    if classes == 10:
        ours = request.getfixturevalue("fine_curves").worst.accuracy
    else:
        ours = robust_curves(net, images, labels, radii=RADII, pgd_steps=15, steps=50)
        ours = ours.worst.accuracy
    x = torch.from_numpy(images).float() / 255
    two = library.TwoLogits(net, torch.arange(classes) < classes // 2)
    sides = torch.from_numpy((fine_labels < 5).astype(np.int64))
    ddn = library.ddn_norms(two, x, sides, 200)
    theirs = np.array([(ddn > radius).mean() for radius in RADII])
    assert (ours <= theirs + 0.02).all()
    for i in (1, 3, 5):
        apgd = library.apgd_robust(two, x, sides, float(RADII[i]), 30).mean()
        assert ours[i] <= apgd + 0.02


# input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "loss"}, "objective must be one of"),
        ({"labels": [0, 1, 10]}, "labels must be the network's own classes, from 0 to 9; got 10"),
        ({"images": torch.full((3, 1, 10, 10), 1.5)}, "images must be within"),
        ({"images": torch.rand(3, 100)}, "images must be of shape"),
        ({"radii": [-1]}, "radii must be at least 0"),
        ({"positive": 10}, "positive must leave at least one"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"model": nn.Sequential(nn.Flatten(), nn.Linear(100, 1))}, "at least two logits"),
        (
            {"model": nn.Sequential(nn.Flatten(), nn.Linear(100, 1), nn.Flatten(0))},
            "at least two logits",
        ),
        ({"model": lambda x: x.flatten(1)}, "model must be a torch.nn.Module; got function"),
        ({"model": nn.Sequential(nn.Flatten(0))}, "a row for each image; got the shape [(]100,[)]"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, message, fine):
    given = {"model": fine, "images": torch.rand(3, 1, 10, 10), "labels": [0, 1, 2], "radii": 1.0}
    with pytest.raises(InputError, match=message):
        pgd_l2(**(given | change))


class Cut(nn.Module):
    """A network whose logits do not lead back to the images."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x).detach()


class Rounded(Cut):
    """A network that rounds its images, so that only its weights have gradients."""

    def forward(self, x):
        return self.net((255 * x).to(torch.uint8).float() / 255)


class Overflowing(Cut):
    """A network that returns NaN for bright images."""

    def forward(self, x):
        logits = self.net(x)
        return torch.where(x.flatten(1).mean(1, keepdim=True) > 0.5, torch.nan, logits)


def test_networks_that_attacks_cannot_judge_are_refused(fine):
    """Without gradients nothing would be found, and a NaN would be a decision for one side."""
    images = torch.full((3, 1, 10, 10), 0.4)
    labels = fine(images).argmax(1)
    for cut in (Cut(fine), Rounded(fine)):
        with pytest.raises(InputError, match="must have gradients with respect to its images"):
            pgd_l2(cut, images, labels, radii=1.0)
    with pytest.raises(InputError, match="must have gradients with respect to its images"):
        perturbed(Rounded(fine), images, labels, radius=1.0, steps=1)
    images[2] = 0.9
    with pytest.raises(InputError, match="finite logits; got NaN or infinity for 1 of 3 images"):
        pgd_l2(Overflowing(fine), images, labels, radii=1.0)


def test_bad_folders_and_objectives_are_refused(fine):
    images, labels = torch.rand(3, 1, 10, 10), [0, 1, 2]
    with pytest.raises(InputError, match="folder must be one that can be written to"):
        robust_curves(fine, images, labels, radii=1, folder=Path(__file__))
    with pytest.raises(InputError, match="objectives must be different"):
        robust_curves(fine, images, labels, radii=1, objectives=["readout", "readout"])
