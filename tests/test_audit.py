from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import featavg as fa
from featavg import InputError
from featavg.auditing.audit import audit
from featavg.auditing.files import read
from featavg.auditing.geometry import Geometry
from featavg.auditing.model import audit_model
from featavg.auditing.page import page
from featavg.cli import main
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
    assert found.geometry.correlation < 0.1
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
    assert "no features to average" in found.verdict
    assert found.reasons == ["no class has more than one subclass, so there is nothing to average"]


def test_reasons_name_what_is_wrong(found):
    """Hand-made audits, each with one thing that spoils the gain."""
    poor = replace(found, fine=replace(found.fine, radii=found.coarse.radii))
    names = {"correlated": "cosines", "unbalanced": "sizes"}
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
    assert geometry.correlation == pytest.approx(0.5)  # |0 + 1/2|: not even centred
    assert geometry.imbalance == 2
    weights = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    # of class 0 one neuron averages and one does not; class 1 has one subclass and no say
    assert geometry.averaging_index(weights, np.array([0, 0, 1])) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_size": 1.5}, "test_size must be"),
        ({"points": 0}, "points must be"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"y": np.r_[np.zeros(397), np.ones(3)]}, "at least 4 points"),
        ({"y": np.linspace(0, 1, 400)}, "continuous"),
        ({"X": np.full((400, 2), np.nan)}, "NaN"),
        ({"subclass": [1, 2]}, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(changes, message, data):
    arguments = {"X": data.x, "y": data.y} | changes
    with pytest.raises(ValueError, match=message):
        audit(**arguments)


# --- files


@pytest.fixture
def files(tmp_path, data):
    """The same points and labels in every form."""
    import pandas as pd

    x, y = data.x[:40, :3], np.where(data.y[:40] > 0, "cat", "dog")
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(label=y)
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    np.savez(tmp_path / "p.npz", X=x, y=y)
    np.save(tmp_path / "X_train.npy", x)
    np.save(tmp_path / "y_train.npy", y)
    return tmp_path


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.npz", "X_train.npy"])
def test_every_form_gives_the_same(name, files, data):
    table = read(files / name)
    np.testing.assert_allclose(table.x, data.x[:40, :3])
    assert table.y.tolist() == ["cat" if y > 0 else "dog" for y in data.y[:40]]
    assert table.subclass is None


def test_columns_can_be_named(files):
    table = read(files / "p.csv", label="label", subclass="a")
    assert table.x.shape == (40, 2)
    assert len(table.subclass) == 40
    with pytest.raises(InputError, match="label must be one of"):
        read(files / "p.csv", label="nope")


class Harmful:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"not an archive", "be what its name says"),
        ("a.csv", b"x,y\n1,2\n3\n", "row 3 of a.csv has 1"),
        ("a.csv", b"x,y\n", "rows of values"),
        ("a.csv", b"x,z\n1,2\n", "label must be named: none"),
        ("a.csv", b"x,y\nred,2\n", "must have numbers; 'x'"),
        ("a.csv", b"x,y\n\xff\xfe,2\n", "be what its name says"),
        ("a.parquet", b"PAR1 no PAR1", "be what its name says"),
        ("a.txt", b"", "must end in"),
        ("X.npy", pickle.dumps(Harmful()), "label must be a file beside"),
    ],
)
def test_files_that_are_not_what_they_say(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)


def test_pickles_are_refused_and_not_executed(tmp_path):
    objects = np.array([Harmful(), Harmful()], dtype=object)
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=objects)
    with pytest.raises(InputError, match="be what its name says"):
        read(tmp_path / "a.npz")
    (tmp_path / "X.npy").write_bytes(pickle.dumps(Harmful()))
    np.save(tmp_path / "y.npy", np.ones(2))
    with pytest.raises(InputError, match="be what its name says"):
        read(tmp_path / "X.npy")


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
        ({"y": data.y[:10]}, "as long"),
        ({"y": np.zeros(400)}, "two classes"),
        ({"model": torch.nn.ReLU()}, "a linear layer"),
        ({"model": torch.nn.Linear(600, 2)}, "two linear layers"),
    ):
        given = {"model": net, "X": data.x, "y": data.y} | arguments
        with pytest.raises(InputError, match=message):
            audit_model(**given)
