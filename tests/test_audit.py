from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.apps.audit.page import page, table_rows
from featavg.apps.cli.main import main
from featavg.auditing.audit import audit
from featavg.auditing.geometry import Geometry
from featavg.auditing.model import audit_model
from featavg.estimators.scaling import Scaling


@pytest.fixture(scope="module")
def data():
    law = fa.MultiCluster(clusters=6, dim=600)
    return law.sample(400, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def found(data):
    return audit(data.x, data.y)


def test_on_the_papers_law_the_audit_finds_what_is_there(data, found):
    assert found.subclasses == {-1: 3, 1: 3}
    assert found.coarse.averaging_index > 0.6
    assert found.fine.averaging_index < 0.05
    assert found.geometry.cosine_deviation < 0.1
    assert found.coarse.accuracy == found.fine.accuracy == 1
    # theory: √(d/k) and √(d/2), in the units of the input
    assert found.coarse.median_radius == pytest.approx(np.sqrt(600 / 6), rel=0.15)
    assert found.fine.median_radius == pytest.approx(np.sqrt(600 / 2), rel=0.15)
    gain, low, high = found.gain
    assert low <= gain <= high
    assert low > 0
    assert "times as robust" in found.verdict
    assert found.predicted_ratio == pytest.approx(np.sqrt(3))
    # one direction breaks the network that averages, and not the other
    assert found.coarse.universal.broken > 0.9
    assert found.fine.universal.broken < 0.1
    np.testing.assert_allclose(np.linalg.norm(found.coarse.universal.directions, axis=1), 1)


def test_held_out_points_have_no_say_in_what_is_learned(data, found):
    """Whatever the held-out points are: subclasses, means and networks are the same."""
    from featavg.auditing.audit import _split

    _, test = _split(data.y, None, 0.25, 0)
    changed = data.x.copy()
    changed[test] = np.random.default_rng(1).normal(size=changed[test].shape)
    other = audit(changed, data.y)
    np.testing.assert_array_equal(other.geometry.means, found.geometry.means)
    assert other.subclasses == found.subclasses
    assert other.coarse.averaging_index == found.coarse.averaging_index
    assert other.coarse.accuracy < 0.8


def test_radii_are_in_the_units_of_the_input(data, found):
    scaled = audit(100 * data.x + 7, data.y)
    ratio = scaled.fine.median_radius / found.fine.median_radius
    assert ratio == pytest.approx(100, rel=0.02)
    assert scaled.ratio == pytest.approx(found.ratio, rel=0.02)


def test_given_subclasses_are_used(data):
    names = np.array(["ant", "bee", "cow", "dog", "eel", "fox"])[data.cluster]
    given = audit(data.x, data.y, names)
    assert given.given
    assert set(given.names) == {"ant", "bee", "cow", "dog", "eel", "fox"}
    assert given.subclass_accuracy == 1
    assert "6" not in given.verdict.split("subclasses")[0]  # 3 + 3 subclasses given in 2 classes


def test_one_subclass_in_each_class_has_nothing_to_average():
    law = fa.MultiCluster(clusters=2, dim=60)
    data = law.sample(120, rng=np.random.default_rng(0))
    found = audit(data.x, data.y, data.y)
    assert np.isnan(found.coarse.averaging_index)
    assert found.verdict == (
        "1 + 1 subclasses given in 2 classes. The subclasses are the classes: there are no "
        "features to average, and nothing to compare."
    )
    assert found.predicted_ratio is None
    assert found.reasons == []
    rows = {name: values for name, *values in table_rows(found)}
    assert rows["averaging index"] == ["–", "–"]
    assert "times as robust (theory)" not in rows


def test_reasons_name_what_is_wrong(found):
    """Hand-made audits, each with one thing that spoils the gain."""
    poor = replace(found, fine=replace(found.fine, radii=found.coarse.radii))
    names = {"not orthogonal": "cosines", "unbalanced": "sizes"}
    correlated = np.full((6, 6), 0.8) + 0.2 * np.eye(6)
    sizes = np.array([90, 10, 50, 50, 50, 50])
    for word, field in names.items():
        value = correlated if field == "cosines" else sizes
        spoiled = replace(poor, geometry=replace(found.geometry, **{field: value}))
        assert any(word in reason for reason in spoiled.reasons)
    overlapping = replace(poor, subclass_accuracy=0.5)
    assert any("overlap" in reason for reason in overlapping.reasons)
    assert found.reasons == []


def test_geometry_by_hand():
    x = np.array([[2.0, 0, 0], [4, 0, 0], [0, 1, 0], [0, 0, 3], [0, 0, 5]])
    geometry = Geometry.of(x, np.array([0, 0, 1, 2, 2]), np.array([0, 0, 1]))
    np.testing.assert_allclose(geometry.means, [[3, 0, 0], [0, 1, 0], [0, 0, 4]])
    np.testing.assert_allclose(geometry.cosines, np.eye(3))
    assert geometry.orthogonal_cosine == -0.5
    assert geometry.cosine_deviation == pytest.approx(0.5)  # |0 + 1/2|: not even centred
    assert geometry.decoupled_index == 0
    assert geometry.imbalance == 2
    weights = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    # of class 0 one neuron averages and one does not; class 1 has one subclass and no say
    assert geometry.averaging_index(weights, np.array([0, 0, 1])) == pytest.approx(0.5)


def _changed(found, *, coarse=None, fine=None, **changes):
    """Return a hand-made audit; `coarse` and `fine` are averaging indices."""
    for name, index in (("coarse", coarse), ("fine", fine)):
        if index is not None:
            changes[name] = replace(getattr(found, name), averaging_index=index)
    return replace(found, **changes)


def test_the_deviation_of_cosines_is_not_called_a_cosine(found):
    parallel = replace(found.geometry, cosines=np.ones((6, 6)))
    poor = replace(found.fine, radii=found.coarse.radii)
    spoiled = replace(found, geometry=parallel, fine=poor)
    assert spoiled.summary()["cosine_deviation"] == pytest.approx(1.2)
    assert "correlation" not in spoiled.summary()
    assert "cosines within a class are 1.20 away, on average, from the -0.20 of" in spoiled.verdict
    assert "|cosine|" not in spoiled.verdict


def test_more_subclasses_are_called_more_robust_only_if_they_are(found):
    more = replace(found, clear={-1: 1, 1: 1})
    assert "Only 1 + 1 can be found again" in more.verdict
    assert "and is more robust than coarse labels on held-out points" in more.verdict
    unclear = replace(more, gain=(0.1, -0.2, 0.3))
    assert "but is not more robust than coarse labels on held-out points" in unclear.verdict
    assert "No difference in robustness" in unclear.verdict


def test_noise_does_not_contradict_itself():
    rng = np.random.default_rng(0)
    found = audit(rng.standard_normal((300, 10)), rng.integers(0, 2, 300), points=40)
    assert "is more robust" not in found.verdict
    assert "No difference in robustness" in found.verdict


def test_the_theory_has_a_factor_only_for_two_classes(found):
    many = replace(found, classes=(0, 1, 2), fine=replace(found.fine, radii=found.coarse.radii))
    assert many.predicted_ratio is None
    assert many.summary()["predicted_ratio"] is None
    assert many.reasons == []
    assert "theory" not in many.verdict
    assert table_rows(many)[-1][-1].endswith("(–)")
    broken = replace(found, coarse=replace(found.coarse, radii=np.zeros(9)))
    assert table_rows(broken)[-1][-1] == "– (1.73)"
    assert "Why the factor" not in page(many, "x")
    assert "Why the factor" in page(replace(many, classes=(0, 1)), "x")


def test_the_index_is_believed_only_where_it_can_tell(found):
    says = "A network trained on the coarse labels averages their features"
    assert says in _changed(found, coarse=0.9, fine=0.1).verdict
    alike = _changed(found, coarse=0.95, fine=0.93).verdict
    assert says not in alike
    assert "cannot be told" in alike
    assert "does not differ (0.93)" in alike
    means = found.geometry.means[:1] + 0.01 * found.geometry.means
    parallel = _changed(found, coarse=0.95, fine=0.6, geometry=replace(found.geometry, means=means))
    assert says not in parallel.verdict
    assert "point so much the same way" in parallel.verdict
    assert "does not average" in _changed(found, coarse=0.05, fine=0.03).verdict


def test_features_of_very_different_scales_get_a_hint(found):
    assert found.hints == []
    uneven = replace(found, leading=(60, 0.998))
    assert uneven.hints == uneven.summary()["hints"]
    assert uneven.hints[0].startswith("60 of 600 features have 99.8 % of the variance")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)) * [1, 1, 100]
    assert "1 of 3 features has 100 %" in audit(x, rng.integers(0, 2, 80), points=5).hints[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_size": 1.5}, "test_size must be"),
        ({"points": 0}, "points must be"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"y": np.r_[np.zeros(397), np.ones(3)]}, "at least 4 points"),
        ({"y": np.linspace(0, 1, 400)}, "y must have classes.*continuous"),
        ({"y": np.array(["a", None] * 200)}, "y must have a value.*200 missing, the first at inde"),
        ({"y": np.array(["a", 1] * 200, dtype=object)}, "one kind.*got int and str"),
        ({"subclass": np.array(["a", ""] * 200)}, "subclass must have a value"),
        ({"X": np.full((400, 2), 0.1)}, "X must have points that differ; got 300"),
        ({"X": np.full((400, 2), np.nan)}, "NaN"),
        ({"subclass": [1, 2]}, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(changes, message, data):
    arguments = {"X": data.x, "y": data.y} | changes
    with pytest.raises(ValueError, match=message):
        audit(**arguments)


# --- the command line and the page


def test_the_command_writes_json_and_a_page(tmp_path, data, found, capsys):
    np.savez(tmp_path / "<points>.npz", X=data.x, y=data.y)
    assert main(["audit", str(tmp_path / "<points>.npz"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    folder = tmp_path / "<points>-audit"
    assert json.loads((folder / "audit.json").read_text()) == printed
    assert printed["ratio"] == pytest.approx(found.ratio)
    text = (folder / "audit.html").read_text()
    assert "&lt;points&gt;" in text
    assert "<points>" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert found.verdict.split(".")[0] in text


def test_each_picture_has_one_frame(found):
    text = page(found, "x")
    assert text.count("<figure>") == text.count("<img") == 2


def test_names_of_classes_cannot_inject_markup(found):
    hostile = replace(found, subclasses={"<script>": 3, "&": 3}, classes=("<script>", "&"))
    assert "<script>" not in page(hostile, "x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nope.npz"], "FILE must be a file"), (["x.doc"], "must end in"), ([], "required")],
)
def test_bad_commands(arguments, message, capsys):
    try:
        code = main(["audit", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


# --- networks of others


def test_a_network_of_ours_has_the_same_index_as_a_module(data):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    net = fa.BinaryNet.init(data, width=3, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    trained = fa.descend(net, data, learning_rate=1e-3, steps=200).net
    module = _module(trained)
    seen = audit_model(module, data.x, data.y, data.cluster)
    assert seen.subclasses == {-1: 3, 1: 3}
    # the package's own index, of centred means in place of centres
    centred = Scaling.of(data.x).apply(data.x)
    measured = fa.Sample.of_points(centred, data.cluster, positive=3)
    assert seen.averaging_index == pytest.approx(fa.averaging_index(trained, measured))
    assert seen.averaging_index > 0.7
    assert seen.cosines.shape == (6, 6)
    one_by_one = _module(fa.BinaryNet(data.centers))
    assert audit_model(one_by_one, data.x, data.y, data.cluster).averaging_index < 0.05
    found = audit_model(one_by_one, data.x, data.y)
    assert found.subclasses == {-1: 3, 1: 3}


def _module(net):
    from torch import nn, tensor

    hidden = nn.Linear(net.dim, len(net.weights))
    hidden.weight.data, hidden.bias.data = tensor(net.weights), tensor(net.biases)
    last = nn.Linear(len(net.weights), 2, bias=False)
    sign = tensor(net.neuron_signs.astype(float))
    last.weight.data = tensor(np.stack([-sign, sign]))
    return nn.Sequential(hidden, nn.ReLU(), last).double()


def test_layers_can_be_named_and_bad_ones_are_refused(data):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(600, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    net.train()
    assert audit_model(net, data.x, data.y, data.cluster, layer="2").layer == "2"
    assert net.training
    for arguments, message in (
        ({"layer": "nope"}, "layer must be one of"),
        ({"y": data.y[:10]}, "equally long"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"model": torch.nn.ReLU()}, "a linear layer"),
        ({"model": torch.nn.Linear(600, 2)}, "two linear layers"),
    ):
        given = {"model": net, "X": data.x, "y": data.y} | arguments
        with pytest.raises(InputError, match=message):
            audit_model(**given)
