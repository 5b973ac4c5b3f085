from __future__ import annotations

import importlib
import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

import featavg as fa
from support import ROOT

BENCHMARKS = ROOT / "benchmarks"
NAMES = (
    "estimator_data",
    "peer_prototypes",
    "peer_networks",
    "peers",
    "frontier_tables",
    "estimators",
)


@pytest.fixture(scope="module")
def modules():
    """The modules of the benchmark, which import each other by their bare names."""
    sys.path.insert(0, str(BENCHMARKS))
    yield {name: importlib.import_module(name) for name in NAMES}
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def points():
    """Two classes of three clusters each."""
    rng = np.random.default_rng(0)
    centers = 4 * rng.standard_normal((6, 8))
    clusters = rng.integers(6, size=300)
    return centers[clusters] + rng.standard_normal((300, 8)), (clusters >= 3).astype(np.int64)


def linear_net(points, labels):
    """Nearest-prototype classification as a network without neurons."""
    return fa.ShallowNet(
        np.zeros((0, points.shape[1])),
        [],
        np.zeros((len(points), 0)),
        -np.square(points).sum(axis=1) / 2,
        linear=points,
        labels=labels,
    )


def assert_certified(model, x, *, rng):
    """No random perturbation within the radius changes a prediction."""
    radii, _ = model.radii(x)
    labels = model.predict(x)
    for _ in range(20):
        step = rng.standard_normal(x.shape)
        step *= 0.999 * (np.minimum(radii, 1e3) / np.linalg.norm(step, axis=1))[:, None]
        assert (model.predict(x + step) == labels).all()


# data


def test_a_seed_draws_a_new_split_of_digits(modules):
    one, other = (modules["estimator_data"].load("digits-odd", seed) for seed in (0, 1))
    assert one.x.shape == (1078, 64)
    assert one.x_test.shape == (719, 64)
    assert (one.y == one.fine % 2).all()
    assert not np.array_equal(one.x, other.x)
    rows = np.unique(np.concatenate([one.x, one.x_test]), axis=0)
    assert len(rows) == len(np.unique(np.concatenate([other.x, other.x_test]), axis=0))


def test_a_seed_keeps_nine_tenths_of_each_class_of_given_training_points(modules):
    data = modules["estimator_data"]
    fine = np.repeat(np.arange(10), 20)
    pools = (np.arange(200.0)[:, None], fine), (np.zeros((5, 1)), np.arange(5))
    one, other = (data.subsampled("any", pools, data.last_five, seed) for seed in (0, 1))
    assert (np.bincount(one.fine) == 18).all()
    assert len(one.x_test) == 5
    assert set(one.x[:, 0]) != set(other.x[:, 0])


def test_the_coarse_labels_of_ten_classes_are_different_questions(modules):
    data, classes = modules["estimator_data"], np.arange(10)
    sides = [f(classes) for f in (data.last_five, data.odd, data.animals, data.random_five)]
    assert [int(side.sum()) for side in sides] == [5, 5, 6, 5]
    for i, one in enumerate(sides):
        for other in sides[:i]:
            assert min((one == other).sum(), (one != other).sum()) >= 3


def test_data_of_resnet50_is_used_only_if_it_is_named(modules):
    data = modules["estimator_data"]
    everything = data.named(None)
    assert len(everything) == 9
    assert set(data.DATA) - set(everything) == {f"{n}-resnet50" for n in data.named(["cifar"])}
    assert data.named(["first5-resnet50"]) == ["cifar-first5-resnet50"]
    assert data.named(["cifar-odd", "resnet50"])[0] == "cifar-odd"


# peers


@pytest.mark.parametrize("kind", ["KMeansPrototypes", "GLVQ"])
def test_prototype_radii_are_exact(modules, points, monkeypatch, kind):
    monkeypatch.setattr(modules["peer_prototypes"].GLVQ, "steps", 20)
    x, y = points
    model = getattr(modules["peer_prototypes"], kind)(7, 0).fit(x[100:], y[100:])
    net = linear_net(model.points, model.labels)
    assert (net.predict(x) == model.predict(x)).all()
    radii, exact = model.radii(x[:100])
    assert radii == pytest.approx(fa.exact_radii(net, x[:100], jobs=1).lower, abs=1e-6)
    assert exact.all()


def test_nearest_neighbour_says_which_radii_are_exact(modules, points):
    x, y = points
    model = modules["peer_prototypes"].NearestNeighbour(None, 0).fit(x[40:], y[40:])
    radii, exact = model.radii(x[:40])
    true = fa.exact_radii(linear_net(x[40:], y[40:]), x[:40], jobs=1, certificates=False).upper
    assert radii[exact] == pytest.approx(true[exact], rel=1e-5)
    assert (radii <= true * (1 + 1e-6)).all()
    assert exact.mean() > 0.5


def test_linear_radii_are_exact(modules, points):
    x, y = points
    model = modules["peers"].MODELS["linear-svm"].make(1000, 0).fit(x, y)
    weights, fitted = model.fitted.coef_[0] / model.unit, model.fitted
    offset = fitted.intercept_[0] - weights @ model.mean
    radii, exact = model.radii(x)
    assert radii == pytest.approx(np.abs(x @ weights + offset) / np.linalg.norm(weights))
    assert exact.all()


def test_kernel_radii_hold_and_are_better_than_a_lipschitz_bound(modules, points):
    x, y = points
    model = modules["peers"].KernelMachine((1.0, 1.0), 0).fit(x, y)
    radii, _ = model.radii(x)
    scores = np.abs(model._scores(x))
    assert (radii >= scores / (model.norm * np.sqrt(2 * model.gamma)) - 1e-12).all()
    assert_certified(model, x, rng=np.random.default_rng(1))


def test_the_lipschitz_network_is_certified_by_the_norms_of_its_layers(
    modules, points, monkeypatch
):
    pytest.importorskip("deel.torchlip")
    monkeypatch.setattr(modules["peer_networks"].Network, "steps", 30)
    x, y = points
    model = modules["peer_networks"].LipschitzNetwork(0.1, 0, hidden=(8, 8)).fit(x, y)
    assert model.lipschitz == pytest.approx(1, rel=1e-3)
    assert (model.predict(x) == y).mean() > 0.8
    assert_certified(model, x, rng=np.random.default_rng(1))


def test_smoothing_draws_the_noise_of_the_first_layer_with_its_law(modules, points, monkeypatch):
    monkeypatch.setattr(modules["peer_networks"].Network, "steps", 30)
    x, y = points
    model = modules["peer_networks"].SmoothedNetwork(0.2, 0).fit(x, y)
    sigma = 0.2 * model.length * model.unit
    noise = np.random.default_rng(0).standard_normal((20_000, 8))
    for row in x[:5]:
        share = (model.scores(row + sigma * noise) > 0).mean()
        assert model._positive_votes(row[None], 20_000, 0)[0] / 20_000 == pytest.approx(
            share, abs=0.02
        )
    radii, exact = model.radii(x)
    # what 1,000 equal votes are worth
    assert radii.max() <= sigma * norm.ppf(0.001 ** (1 / 1000)) * (1 + 1e-9)
    assert not exact.any()


def test_adversarial_examples_stay_within_their_radius_and_raise_the_loss(modules, points):
    torch = pytest.importorskip("torch")
    networks = modules["peer_networks"]
    torch.manual_seed(0)
    net = networks.relu_network(8, 4)
    x = torch.tensor(points[0], dtype=torch.float32)
    signs = torch.ones(len(x))
    moved = networks.attacked(net, x, signs, 0.5)
    assert (moved - x).norm(dim=1).max() <= 0.5 + 1e-5
    assert net(moved).mean() < net(x).mean()


def test_adversarially_trained_networks_have_exact_radii(modules, points, monkeypatch):
    monkeypatch.setattr(modules["peer_networks"].Network, "steps", 30)
    x, y = points
    model = modules["peer_networks"].AdversarialNetwork(0.1, 0).fit(x, y)
    radii, exact = model.radii(x[:5])
    assert exact.all()
    assert (radii > 0).all()


def test_every_operating_point_of_ours_is_a_row(modules):
    models = modules["peers"].MODELS
    for name in ("averaging", "decoupled"):
        rows = [models[f"{name}-{value}"] for value in ("0", "0.5", "1", "2")]
        assert [row.knobs for row in rows] == [(0.0,), (0.5,), (1.0,), (2.0,)]
        assert len({row.family for row in rows}) == 1
    assert next(iter(models)) == modules["estimators"].UNIT


# the run and its tables


def test_a_run_goes_on_where_it_stopped_and_draws_what_is_there(tmp_path):
    command = [sys.executable, BENCHMARKS / "estimators.py", "--quick", "--out", tmp_path]
    command += ["--models", "k-means", "logistic", "adversarial", "decoupled-2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = sorted(tmp_path.glob("digits-first5/*/*.json"))
    assert len(files) == 4 + 3  # a seed of each, and the knobs of three
    first = json.loads((tmp_path / "digits-first5" / "k-means" / "seed-0.json").read_text())
    knobs = json.loads((tmp_path / "digits-first5" / "k-means" / "knobs.json").read_text())
    chosen = next(row for row in knobs["rows"] if row["knob"] == first["knob"])
    assert first["certified_radii"][2] == chosen["median_radius"]
    assert first["certified_accuracy"] == sorted(first["certified_accuracy"], reverse=True)
    files[-1].unlink()
    times = {path: path.stat().st_mtime_ns for path in files[:-1]}
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.count("seed 0") == 1
    assert times == {path: path.stat().st_mtime_ns for path in files[:-1]}
    tables = subprocess.run([*command, "--tables"], capture_output=True, text=True, check=True)
    assert tables.stdout.strip() == (tmp_path / "table.md").read_text(encoding="utf-8").strip()
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")


def result(accuracy, radius, points=10):
    common = [radius] * 3
    return {
        "accuracy": accuracy,
        "median_radius": radius,
        "radius_points": points,
        "common_radii": common,
    }


def test_ratios_are_at_the_largest_radius_that_is_as_accurate_as_the_peer(modules):
    tables = modules["frontier_tables"]
    seeds = {
        ("text", "glvq"): [result(0.90, 2.0), result(0.92, 4.0)],
        ("text", "logistic"): [result(0.99, 1.0)],
        ("text", "decoupled-0"): [result(0.92, 3.0), result(0.92, 3.0)],
        ("text", "decoupled-1"): [result(0.91, 4.0), result(0.905, 6.0)],
        ("text", "decoupled-2"): [result(0.80, 9.0), result(0.80, 9.0)],
    }
    found = tables.Results(seeds, {})
    ours = [f"decoupled-{value}" for value in ("0", "0.5", "1", "2")]
    assert tables._ratio(found, "text", ours, "glvq") == "1.75"  # (4/2 + 6/4) / 2
    assert tables._ratio(found, "text", ours, "logistic") == "–"
    assert tables._ratio(found, "text", ours, "k-means") == ""


def test_a_run_that_was_stopped_can_be_drawn(modules):
    """Its rows have different numbers of seeds."""
    tables = modules["frontier_tables"]
    seeds = {
        ("text", "decoupled-0"): [result(0.92, 3.0), result(0.92, 3.0)],
        ("text", "decoupled-1"): [result(0.91, 4.0)],
    }
    assert tables.draw(tables.Results(seeds, {})).startswith(b"\x89PNG")


def test_ratios_are_over_the_same_points(modules):
    few = {**result(0.9, 5.0, points=3), "common_radii": [6.0, 6.0, 6.0]}
    many = {**result(0.9, 1.0, points=10), "common_radii": [3.0, 3.0, 3.0]}
    seeds = {("text", "decoupled-0"): [few], ("text", "glvq"): [many]}
    tables = modules["frontier_tables"]
    found = tables.Results(seeds, {})
    assert tables._ratio(found, "text", ["decoupled-0"], "glvq") == "2.00"


def test_values_of_knobs_are_in_order(modules):
    for key, model in modules["peers"].MODELS.items():
        assert all(a < b for a, b in pairwise(model.knobs)), key
