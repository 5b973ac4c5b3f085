"""All attacks together, in the order of their cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from featavg import InputError
from featavg.vision import worst
from featavg.vision.attacks import pgd_l2
from featavg.vision.curves import robust_curves
from featavg.vision.evaluation import outputs
from featavg.vision.objectives import readout
from featavg.vision.worst import worst_norms
from support.blob_images import linear

RADII = [0.2, 0.4, 0.7]

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_linear_network_has_the_distance_to_its_boundary(rng):
    w = torch.from_numpy(rng.standard_normal((2, 48))).float()
    net = linear(w, torch.tensor([0.1, -0.1]))
    x = torch.from_numpy(0.5 + 0.1 * rng.standard_normal((40, 3, 4, 4))).float()
    logits = net(x).detach()
    exact = ((logits[:, 0] - logits[:, 1]).abs() / (w[0] - w[1]).norm()).numpy()
    norms = worst_norms(net, x, logits.argmax(1), radii=RADII)
    assert (norms >= exact * (1 - 1e-5)).all()
    assert norms == pytest.approx(exact, rel=0.01)


def test_images_that_are_wrong_need_no_perturbation(fine, held_out):
    images, labels = held_out
    others = (labels + 5) % 10  # a class of the other side
    assert (worst_norms(fine, images, others, radii=RADII) == 0).mean() > 0.9
    signed = readout(outputs(fine, images), torch.arange(10) < 5).numpy()
    wrong = (signed > 0) != (labels < 5)
    assert np.array_equal(worst_norms(fine, images, labels, radii=RADII, steps=2) == 0, wrong)


@pytest.mark.parametrize("classes", [2, 10])
def test_hardly_weaker_than_each_objective_attacked_at_length(classes, request, held_out):
    net = request.getfixturevalue("fine" if classes == 10 else "coarse")
    images, labels = held_out
    labels = labels if classes == 10 else labels // 5
    quick = worst_norms(net, images, labels, radii=RADII)
    long = robust_curves(net, images, labels, radii=RADII, pgd_steps=40, steps=100).norms["worst"]
    right = long > 0
    assert np.array_equal(quick > 0, right)
    assert np.median(quick[right] / long[right]) < 1.01
    for radius in RADII:
        assert (quick > radius).sum() <= (long > radius).sum() + 2  # of 100


def test_pgd_breaks_what_short_descents_leave(fine, held_out, monkeypatch):
    """With no descent and no walk, what is left is what PGD alone leaves."""
    monkeypatch.setattr(worst, "_by_descent", lambda *_: None)
    monkeypatch.setattr(worst, "_by_walk", lambda *_: None)
    radii = RADII[:2]
    norms = worst_norms(fine, *held_out, radii=radii, pgd_steps=15, restarts=1)
    alone = pgd_l2(fine, *held_out, radii=radii, steps=15)
    for i, radius in enumerate(radii):
        assert (norms > radius).sum() <= alone.robust[:, i].sum() + 2  # of 100
    assert np.isinf(norms).any()  # nothing is made up where nothing was found


def test_results_of_batches_are_saved_and_not_computed_again(fine, held_out, tmp_path, monkeypatch):
    options = {"radii": RADII, "steps": 4, "pgd_steps": 2, "batch": 30}
    whole = worst_norms(fine, *held_out, **options)
    attack, calls = worst._attack, []

    def stopping(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return attack(*arguments)

    monkeypatch.setattr(worst, "_attack", stopping)
    with pytest.raises(KeyboardInterrupt):
        worst_norms(fine, *held_out, folder=tmp_path, **options)
    assert np.array_equal(worst_norms(fine, *held_out, folder=tmp_path, **options), whole)
    assert len(calls) == 3 + 2  # of four batches, two were saved
    more = worst_norms(fine, held_out[0][:60], held_out[1][:60], folder=tmp_path, **options)
    assert len(calls) == 5  # with other images after them, batches are the same
    assert np.array_equal(more, whole[:60])
    again = worst_norms(fine, *held_out, folder=tmp_path, **(options | {"steps": 5}))
    assert len(calls) == 5 + 4  # other settings are other results
    assert not np.array_equal(again, whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radii": [-1]}, "radii must be at least 0"),
        ({"aims": 0}, "aims must be a whole number"),
        ({"labels": [0, 1, 10]}, "labels must be the network's own classes, from 0 to 9; got 10"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, message, fine):
    given = {"model": fine, "images": torch.rand(3, 1, 10, 10), "labels": [0, 1, 2], "radii": 1.0}
    with pytest.raises(InputError, match=message):
        worst_norms(**(given | change))
