from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg.drawing import draw
from featavg.experiments import EXPERIMENTS, ablations, figure2, run

FIGURES = [f"figure{i}" for i in range(5, 10)]
TINY = {"clusters": 4, "dim": 300, "width": 2, "test_samples": 8, "steps": 30}
TINY_VALUES = {"figure5": "60, 400", "figure6": "0.02, 0.01"}


def tiny(name: str, **changes):
    """The experiment at a size that takes a fraction of a second."""
    values = {"values": TINY_VALUES[name]} if name in TINY_VALUES else {}
    size = {} if name == "figure5" else {"samples": 60}
    return replace(EXPERIMENTS[name].parameters, **TINY, **size, **values, **changes)


@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("figure5", {"samples": [1000, 10000, 50000]}),
        ("figure6", {"learning_rate": [0.01, 0.001, 0.0001]}),
        ("figure7", {f"{s}_scale": [0.001, 0.0001, 0.00001] for s in ("weight", "bias")}),
        ("figure8", {"noise": [2, 1, 0.5], "signal": [1, 1, 1]}),
        ("figure9", {"cosine": [0.00001, 0.001, 0.09]}),
    ],
)
def test_the_papers_values_reach_the_setting_and_nothing_else_does(name, reached):
    settings = list(EXPERIMENTS[name].parameters.settings.values())
    usual = ablations.VariedMatrixSetting(test_samples=100)
    for i, setting in enumerate(settings):
        assert setting == replace(usual, **{field: values[i] for field, values in reached.items()})


@pytest.mark.parametrize(
    ("name", "see"),
    [
        ("figure5", lambda run: len(run.sample)),
        ("figure6", lambda run: run.learning_rate),
        ("figure7", lambda run: run.initial_net.weights.std() / run.initial_net.biases.std()),
        ("figure8", lambda run: run.sample.law.signal / run.sample.law.noise),
        ("figure9", lambda run: run.sample.centers[0] @ run.sample.centers[1] / 300),
    ],
)
def test_the_values_reach_what_is_trained(name, see):
    parameters = tiny(name)
    for value, setting in parameters.settings.items():
        trained = setting.train_coarse(setting.draw(0)[0], 0)
        if name == "figure7":
            assert trained.initial_net.weights.std() == pytest.approx(value, rel=0.1)
            assert np.abs(trained.initial_net.biases).max() < 4 * value
        else:
            assert see(trained) == pytest.approx(value, abs=1e-12)


def test_the_numbers_are_those_of_the_network_worked_out_by_hand():
    parameters = tiny("figure6")
    found = ablations.measure(parameters, seed=3)

    data, start, *_ = np.random.default_rng(3).spawn(4)
    train = fa.MultiCluster(clusters=4, dim=300).sample(60, rng=data)
    test = train.fresh(8, rng=data)
    net = fa.BinaryNet.init(train, width=2, weight_scale=1e-5, bias_scale=1e-5, rng=start)
    net = fa.descend(net, train, learning_rate=0.02, steps=30).net
    cosines = train.centers @ net.weights.T / np.sqrt(300) / np.linalg.norm(net.weights, axis=1)
    np.testing.assert_allclose(found["cosines"][0], cosines, rtol=1e-10)
    squares = [np.maximum(cosines[own, r], 0) ** 2 for r, own in enumerate([[0, 1]] * 2)]
    squares += [np.maximum(cosines[own, r + 2], 0) ** 2 for r, own in enumerate([[2, 3]] * 2)]
    index = np.mean([s.sum() ** 2 / (s**2).sum() - 1 for s in squares])
    assert found["index_0.02"] == pytest.approx(index)
    radii = fa.exact_radii(net, test.x, test.y)
    assert found["radius_0.02"] == pytest.approx(np.median(radii.upper))
    assert found["exact_0.02"] == 1
    assert found["index_0.01"] != found["index_0.02"]


def test_the_baseline_is_the_network_of_figure2():
    size = {"dim": 600, "samples": 100, "test_samples": 5}
    shared = figure2.measure(replace(figure2.EXPERIMENT.parameters, **size), seed=1)
    for name, i in (("figure6", 1), ("figure7", 2), ("figure8", 1)):
        found = ablations.measure(replace(EXPERIMENTS[name].parameters, **size), seed=1)
        np.testing.assert_array_equal(found["cosines"][i], shared["coarse_cosines"])


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_panel_for_each_value(name, tmp_path):
    parameters = tiny(name)
    finished = run(EXPERIMENTS[name], parameters, seeds=2, out=tmp_path)
    figure = draw.figure(EXPERIMENTS[name].views(parameters, finished.results))
    *panels, bar = figure.axes
    assert len(panels) == len(parameters.settings)
    assert bar.get_ylabel() == "cosine"
    for i, (panel, value) in enumerate(zip(panels, parameters.settings, strict=True)):
        drawn = panel.images[0].get_array()
        np.testing.assert_allclose(drawn, finished.results["cosines"][0, i], rtol=1e-5)
        assert f"= {np.format_float_positional(value, trim='-')}" in panel.get_title()
    rows = (finished.folder / "results.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * len(panels) * 16


def outcomes(name: str, **altered: float):
    """Judge the paper's conclusions on results that agree with them, or were altered."""
    parameters = EXPERIMENTS[name].parameters
    expectations = EXPERIMENTS[name].expects(parameters)
    results = {e.quantity: np.array([1.0, 1.0]) for e in expectations}
    for value in parameters.settings:
        if parameters.ablation.does_not[0] <= value:
            results[ablations.quantity("index", value)] = np.array([0.5, 0.5])
    results |= {quantity: np.array([1.0, value]) for quantity, value in altered.items()}
    return {e.quantity: e.judge(results).holds for e in expectations}


@pytest.mark.parametrize(
    ("name", "quantity", "value"),
    [
        ("figure5", "index_50000", 0.89),
        ("figure5", "radius_gain", 1.06),
        ("figure6", "index_0.0001", 0.89),
        ("figure7", "index_0.00001", np.nan),
        ("figure8", "index_0.5", 0.89),
        ("figure9", "index_0.09", 0.89),
    ],
)
def test_a_conclusion_fails_where_one_seed_contradicts_it(name, quantity, value):
    assert all(outcomes(name).values())
    altered = outcomes(name, **{quantity: value})
    assert [q for q, holds in altered.items() if not holds] == [quantity]


@pytest.mark.parametrize(("name", "value"), [("figure6", 0.01), ("figure7", 0.001)])
def test_what_our_runs_contradict_is_reported_and_the_rule_stays_beyond_it(name, value):
    parameters = EXPERIMENTS[name].parameters
    contested = EXPERIMENTS[name].expects(parameters)[0]
    assert contested.quantity == ablations.quantity("index", value)
    assert (contested.rule, contested.paper) == ("reported", "does not")
    assert contested.statement.endswith("against the paper")
    beyond = replace(parameters, values=str(10 * value))
    asked = EXPERIMENTS[name].expects(beyond)[0]
    assert asked.paper == "does not"
    assert asked.high == np.nextafter(0.9, 0)


def test_large_initial_weights_end_averaging(tmp_path):
    """The rule can say no: a network that keeps its initial weights does not average."""
    parameters = tiny("figure7", values="1, 0.00001")
    finished = run(EXPERIMENTS["figure7"], parameters, seeds=1, out=tmp_path)
    large, small = (finished.results[f"index_{v}"][0] for v in ("1", "0.00001"))
    assert large < 0.9 < small
    assert finished.holds


def test_values_are_a_list_of_numbers():
    parameters = EXPERIMENTS["figure6"].parameters
    assert replace(parameters, values="1e-2,.001 , 1e-4") == parameters
    for values in ("", "a, b", "0.1,,0.2", "0.1, 0.1", "nan", "inf"):
        with pytest.raises(fa.InputError, match="values must be different numbers"):
            replace(parameters, values=values)
    with pytest.raises(fa.InputError, match="learning_rate must be above 0"):
        replace(parameters, values="0.1, -1")
    with pytest.raises(fa.InputError, match="samples must be a whole number"):
        replace(EXPERIMENTS["figure5"].parameters, values="10.5")
    with pytest.raises(fa.InputError, match="SNR must be above 0; got 0.0"):
        replace(EXPERIMENTS["figure8"].parameters, values="0")


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_varied_cannot_be_set_as_well(name):
    parameters = EXPERIMENTS[name].parameters
    for field in parameters.ablation.sets:
        other = 17 if field == "samples" else 0.017
        with pytest.raises(fa.InputError, match=f"{field} is what this experiment varies"):
            replace(parameters, **{field: other})
