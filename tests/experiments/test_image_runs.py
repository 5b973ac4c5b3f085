"""The whole path of the experiments on images, from the files to the figure, at tiny size."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from itertools import pairwise

import pytest

from featavg.apps.cli.main import main
from featavg.errors import InputError
from featavg.experiments import margin_mnist
from featavg.vision import curves, training, worst
from support import tiny_datasets

TINY = {
    "figure3-mnist": "--network small-cnn --width 2 --recipe mnist-quick",
    "figure3-cifar10": "--width 2 --recipe cifar10-quick",
    "figure3-fashion": "--network small-cnn --width 2 --recipe mnist-quick --split parity",
}
ATTACK = "--attack-images 4 --radii 3 --radius-step 0.5 --pgd-steps 3 --minimal-steps 4 --seeds 1"
DATASETS = {name: name.removeprefix("figure3-") for name in TINY} | {
    "figure3-fashion": "fashion-mnist",
    "margin-mnist": "mnist",
    "fine-labels-mnist": "mnist",
    "fine-labels-cifar10": "cifar10",
    "fine-labels-recipes": "fashion-mnist",
    "fine-labels-loss": "fashion-mnist",
}
FINE_LABELS = (
    "--shares 0,30,100 --control-share 30 --attack-images 4 --pgd-steps 2 --restarts 1 "
    "--minimal-steps 3 --adversarial-steps 2"
)


@pytest.fixture
def run(tmp_path, monkeypatch, declare, capsys):
    """Run an experiment on the tiny data set, with an empty cache and the data as torchvision's."""

    def runs(name, options, where="runs"):
        folder = tmp_path / "data"
        dataset = DATASETS[name]
        if not folder.exists():
            declare(dataset)
            tiny_datasets.torchvision_folder(folder, dataset)
        monkeypatch.setenv("FEATAVG_DATA", str(folder))
        monkeypatch.setenv("FEATAVG_CACHE", str(tmp_path / where / "cache"))
        out = tmp_path / where / "out"
        code = main(["run", name, *options.split(), "--out", str(out)])
        (summary,) = out.rglob("summary.json")
        with (summary.parent / "results.csv").open() as file:
            rows = list(csv.DictReader(file))
        capsys.readouterr()
        return code, json.loads(summary.read_text()), rows

    return runs


@pytest.mark.parametrize("name", TINY)
def test_figure3_from_files_to_conclusion(name, run):
    code, summary, rows = run(name, f"{TINY[name]} {ATTACK}")
    assert code in (0, 1)  # networks trained on a few images need not be accurate
    series = {}
    for row in rows:
        key = int(row["classes"]), row["attack"]
        series.setdefault(key, []).append(float(row["robust_accuracy"]))
    assert {classes for classes, _ in series} == {2, 10}
    for (classes, attack), values in series.items():
        if attack != "plain":  # which attacks each radius anew
            assert all(a >= b for a, b in pairwise(values))
        worst = series[classes, "worst"]
        assert all(w <= v for w, v in zip(worst, values, strict=True))
    assert "Under the worst of all attacks" in summary["conclusion"]
    assert "by plain PGD on the own cross-entropy" in summary["conclusion"]


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_attack_goes_on_and_ends_with_the_same_numbers(after, run, monkeypatch):
    options = f"{TINY['figure3-mnist']} {ATTACK}"
    _, _, whole = run("figure3-mnist", options, "whole")
    minimal_norms, calls = curves.minimal_norms, []

    def stopping(*arguments):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return minimal_norms(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(curves, "minimal_norms", stopping)
        with pytest.raises((KeyboardInterrupt, SystemExit, ValueError)):
            run("figure3-mnist", options, "stopped")
    _, _, resumed = run("figure3-mnist", options, "stopped")
    assert resumed == whole


def test_fine_labels_from_files_to_conclusion(run):
    options = f"{FINE_LABELS} --seeds 2 --adversarial-radius 1.5"
    code, summary, rows = run("fine-labels-mnist", options)
    assert code in (0, 1)
    assert [row["supply"] for row in rows if row["seed"] == "0"] == [
        "the side, one score",
        "the side, ten latent outputs",
        "fine for 30 %",
        "all fine labels",
        "30 % drawn from the side",
        "30 % with weight 10",
        "k-means, early network",
        "the side, one score",
        "fine for 30 %",
        "all fine labels",
    ]
    for row in rows:
        robust = [float(row[name]) for name in ("clean", "robust_0.5", "robust_1", "robust_1.5")]
        assert all(a >= b for a, b in pairwise(robust[1:]))
        assert float(row["epochs"]) == 2
        assert float(row["side_loss"]) > 0
    assert "Robust accuracy at radius 1 in %" in summary["conclusion"]


def test_fine_labels_stop_at_a_loss_and_run_on_colours(run):
    options = f"{FINE_LABELS} --seeds 1 --recipe adam --until-loss 0.5"
    _, summary, rows = run("fine-labels-cifar10", options)
    assert summary["parameters"]["until_loss"] == 0.5
    assert {row["family"] for row in rows} == {"fine labels", "controls"}
    assert all(float(row["loss"]) <= 0.5 or float(row["epochs"]) == 100 for row in rows)
    assert any(float(row["epochs"]) < 100 for row in rows)


@pytest.mark.parametrize(("name", "after"), [("training", 2), ("attack", 3)])
def test_interrupted_fine_labels_go_on_and_end_with_the_same_bytes(
    name, after, run, monkeypatch, tmp_path
):
    """Stopped between two trainings, in the middle of one, and between two attacks."""
    options = f"{FINE_LABELS} --seeds 1 --split random"
    run("fine-labels-mnist", options, "whole")
    place, function = {
        "training": (training._Run, "one_epoch"),
        "attack": (worst, "_attack"),
    }[name]
    original, calls = getattr(place, function), []

    def stopping(*arguments):
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(place, function, stopping)
        with pytest.raises((KeyboardInterrupt, SystemExit, ValueError)):
            run("fine-labels-mnist", options, "stopped")
    run("fine-labels-mnist", options, "stopped")
    for file in ("results.csv", "scalars.csv", "summary.json", "views.json", "0.npz"):
        one, other = ((tmp_path / where / "out").rglob(file) for where in ("whole", "stopped"))
        assert next(one).read_bytes() == next(other).read_bytes(), file


def test_fine_labels_recipes_from_files_to_conclusion(run):
    tiny = "--attack-images 3 --pgd-steps 2 --restarts 1 --minimal-steps 3 --seeds 1"
    rows_of = "adam_norm,sgd_network"
    _, summary, rows = run("fine-labels-recipes", f"{tiny} --variations {rows_of} --splits parity")
    assert summary["parameters"]["variations"] == "adam_norm, sgd_network"
    assert [(row["optimizer"], row["labels"]) for row in rows] == [
        ("adam", "coarse"),
        ("adam", "fine"),
        ("sgd", "coarse"),
        ("sgd", "fine"),
    ]
    assert "parity: Adam's recipe, batch normalisation" in summary["conclusion"]


def test_fine_labels_at_equal_loss_from_files_to_conclusion(run):
    tiny = "--attack-images 3 --pgd-steps 2 --restarts 1 --minimal-steps 3 --seeds 1"
    options = f"{tiny} --optimizers sgd-small --splits parity --supplies fine100,kmeans"
    _, summary, rows = run("fine-labels-loss", f"{options} --epochs 4")
    of = [(row["labels"], int(row["epochs"])) for row in rows]
    named = ("the side, one score", "all fine labels", "k-means, early network")
    assert of == [(name, epochs) for name in named for epochs in (1, 2, 4)]
    assert "SGD, rate 0.01, parity, k-means, early network: " in summary["conclusion"]
    # what was trained for less time is the beginning of the longer training
    _, _, shorter = run("fine-labels-loss", f"{options} --epochs 2", "shorter")
    assert shorter == [row for row in rows if int(row["epochs"]) < 4]


def test_margin_mnist_trains_one_network_longer_and_longer(run):
    tiny = "--width 2 --epochs 8 --networks 3 --batch 4 --attack-images 4 --radii 3 --pgd-steps 3"
    _, summary, rows = run("margin-mnist", tiny)
    assert [int(row["epochs"]) for row in rows] == [2, 4, 8]
    for row in rows:
        margin, norm = float(row["margin"]), float(row["norm"])
        assert float(row["normalized_margin"]) == pytest.approx(margin / norm**4)
    assert "From epoch 2 to 8 the training loss fell" in summary["conclusion"]
    # a run that stops earlier is the beginning of the longer one
    _, _, shorter = run("margin-mnist", tiny.replace("--epochs 8", "--epochs 4"), "shorter")
    assert shorter[-1] == rows[1]


def test_margin_mnist_can_be_measured_at_the_epochs_of_the_talk():
    usual = margin_mnist.EXPERIMENT.parameters
    assert usual.milestones == [27, 54, 108]
    assert replace(usual, rows="talk").milestones == [38, 75, 107]
    longest = replace(usual, rows="talk", epochs=10_000)
    assert longest.milestones == [38, 75, 107, 935, 10_000]
    growth = margin_mnist.expects(longest)[3]
    assert growth.paper == "21 from 38 to 10,000 epochs"
    with pytest.raises(InputError, match="epochs must be at least 75 because .*; got 50"):
        replace(usual, rows="talk", epochs=50)
