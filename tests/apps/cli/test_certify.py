from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from featavg import InputError
from featavg.apps.cli.certify import own_labels
from featavg.networks.shallow import ShallowNet
from featavg.robustness import certify as exact
from support.command import command

# above or below the diagonal: the radius is |x1 - x2| / sqrt(2)
WEIGHTS = {"linear": [[1.0, -1.0]], "c": [0.0], "labels": [0, 1]}
POINTS = np.array([[3.0, 1.0], [0.0, 2.0], [1.0, 2.0], [5.0, 1.0]])
LABELS = np.array([1, 0, 1, 1])


def in_closed_form(calls):
    """Return an `exact_radii` of the diagonal that keeps its arguments."""

    def exact_radii(model, X, y=None, **options):
        calls.append(SimpleNamespace(model=model, x=X, y=y, **options))
        radius = np.abs(X[:, 0] - X[:, 1]) / np.sqrt(2)
        if y is not None:
            radius[model.predict(X) != y] = 0.0
        lower = radius.copy()
        lower[-1] /= 2  # was not closed in time
        return SimpleNamespace(
            lower=lower, upper=radius, exact=lower == radius, norm=options["norm"]
        )

    return exact_radii


@pytest.fixture
def calls(monkeypatch):
    found = []
    monkeypatch.setattr(exact, "exact_radii", in_closed_form(found))
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("model.npz", **WEIGHTS)
    np.savez("points.npz", X=POINTS, y=LABELS)
    return tmp_path


def written(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_table_and_a_file(folder, calls, capsys):
    code, out, err = command(capsys, "certify", "model.npz", "points.npz")
    assert (code, err) == (0, "")
    assert "4 points; accuracy 75.0%; exact radii for 75.0%; norm l2." in out
    assert "robust accuracy at" in out
    rows = written(folder / "points-certify" / "radii.csv")
    assert "points-certify/radii.csv" in out
    assert [row["index"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["label"] for row in rows] == ["1", "0", "1", "1"]
    assert [row["prediction"] for row in rows] == ["1", "0", "0", "1"]
    ends = np.array([[float(row["lower"]), float(row["upper"])] for row in rows])
    np.testing.assert_allclose(ends[:, 1], np.sqrt([2, 2, 0, 8]))
    np.testing.assert_allclose(ends[:, 0], np.sqrt([2, 2, 0, 2]))
    assert [row["exact"] for row in rows] == ["true", "true", "true", "false"]
    assert {row["norm"] for row in rows} == {"l2"}


def test_numbers_as_json(folder, calls, capsys):
    code, out, _ = command(capsys, "certify", "model.npz", "points.npz", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["accuracy"] == 0.75
    middle = found["quantiles"][2]
    assert list(middle.values()) == pytest.approx([0.5, 2**0.5, 2**0.5])
    shares = {row["radius"]: (row["lower"], row["upper"]) for row in found["robust"]}
    assert shares[0.0] == (0.75, 0.75)
    assert shares[2.1] == (0.0, 0.25)  # the point that was not closed
    assert len(shares) == 5


def test_options_reach_the_search(folder, calls, capsys):
    options = ["--norm", "linf", "--bounds", "-1", "9.5", "--time-limit", "3", "--target", "0"]
    assert command(capsys, "certify", "model.npz", "points.npz", *options)[0] == 0
    (call,) = calls
    assert isinstance(call.model, ShallowNet)
    assert (call.norm, call.bounds, call.time_limit, call.target) == ("linf", (-1.0, 9.5), 3.0, 0)
    assert (call.x == POINTS).all()
    assert (call.y == LABELS).all()
    command(capsys, "certify", "model.npz", "points.npz")
    assert (calls[1].norm, calls[1].bounds, calls[1].time_limit, calls[1].target) == (
        *("l2", None, 10.0, None),
    )


def test_points_without_labels(folder, calls, capsys):
    np.save("alone.npy", POINTS)
    np.savez("alone.npz", X=POINTS)
    pd.DataFrame(POINTS, columns=["a", "b"]).to_csv("alone.csv")
    for name in ("alone.npy", "alone.npz", "alone.csv"):
        code, out, _ = command(capsys, "certify", "model.npz", name, "--out", "out")
        assert code == 0
        assert "accuracy" not in out
        assert "predictions that stay at" in out
        assert calls[-1].y is None
        assert (calls[-1].x == POINTS).all()
        assert {row["label"] for row in written(folder / "out" / "radii.csv")} == {""}
    assert "only numbers the rows and is left out" in out


def test_a_choice_of_points(folder, calls, capsys):
    X = np.random.default_rng(0).normal(size=(50, 2))
    np.savez("many.npz", X=X, y=np.arange(50) % 2)
    code, out, _ = command(capsys, "certify", "model.npz", "many.npz", "--points", "7")
    assert code == 0
    assert "7 of 50 points" in out
    chosen = [int(row["index"]) for row in written(folder / "many-certify" / "radii.csv")]
    assert (calls[0].x == X[chosen]).all()
    assert (calls[0].y == np.arange(50)[chosen] % 2).all()
    command(capsys, "certify", "model.npz", "many.npz", "--points", "7", "--seed", "1")
    assert not (calls[1].x == calls[0].x).all()


def test_labels_of_text_files(folder, calls, capsys):
    frame = pd.DataFrame(POINTS, columns=["a", "b"])
    frame.assign(sort=LABELS).to_csv("points.csv", index=False)
    assert command(capsys, "certify", "model.npz", "points.csv", "--label", "sort")[0] == 0
    assert calls[0].y.tolist() == [1, 0, 1, 1]
    np.savez("model.npz", **WEIGHTS | {"labels": ["cat", "dog"]})
    frame.assign(sort=["dog", "cat", "dog", "dog"]).to_csv("points.csv", index=False)
    arguments = ("certify", "model.npz", "points.csv", "--label", "sort", "--target", "cat")
    assert command(capsys, *arguments)[0] == 0
    assert (calls[1].y.tolist(), calls[1].target) == (["dog", "cat", "dog", "dog"], "cat")


@pytest.mark.parametrize(
    ("values", "labels", "same"),
    [
        (["1.0", "2"], [1, 2], [1, 2]),
        ([1.0, 2.0], ["1", "2"], ["1", "2"]),
        (["01", "1"], ["1", "01"], ["01", "1"]),
        ([True, False], [0, 1], [1, 0]),
        (["True", "False"], [False, True], [True, False]),
        (["1", "0"], [False, True], [True, False]),
        (["inf", "a"], ["a", "inf"], ["inf", "a"]),
        ([-1, 1], [1, -1, 1], [-1, 1]),  # two outputs of one label
    ],
)
def test_labels_are_matched(values, labels, same):
    assert own_labels("labels", np.array(values), np.array(labels)).tolist() == same


def test_numbers_of_python_alone_are_texts(folder, capsys):
    with pytest.raises(InputError, match="labels of DATA must be those of MODEL"):
        own_labels("labels", np.array(["1_0"]), np.array([0, 10]))
    (folder / "points.csv").write_text("a,b,y\n1_0,2,0\n")
    code, _, said = command(capsys, "certify", "model.npz", "points.csv")
    assert code == 2
    assert "must have numbers only; 'a' has '1_0'" in said


def test_infinite_radii(folder, capsys, monkeypatch):
    def nothing_turns(model, X, y=None, **options):
        radii = np.full(len(X), np.inf)
        return SimpleNamespace(lower=radii, upper=radii, exact=radii == radii, norm="l2")

    monkeypatch.setattr(exact, "exact_radii", nothing_turns)
    code, out, _ = command(capsys, "certify", "model.npz", "points.npz")
    assert code == 0
    assert "inf" in out
    assert written(folder / "points-certify" / "radii.csv")[0]["lower"] == "inf"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.npz"], "the following arguments are required: DATA"),
        (["nope.npz", "points.npz"], "cannot read nope.npz: no such file or directory."),
        (["model.pkl", "points.npz"], "MODEL must end in .npz or .safetensors; got model.pkl."),
        (["points.npz", "points.npz"], "MODEL must hold the arrays W, b, A and c"),
        (["cut.npz", "points.npz"], "cut.npz must be a whole file of arrays"),
        (["text.npz", "points.npz"], "W must hold real numbers"),
        (["header.safetensors", "points.npz"], "its header must have at most 1,048,576 bytes"),
        (["huge.npz", "points.npz"], "outputs of MODEL must be finite"),
        (["model.npz", "nope.npz"], "there is no file nope.npz."),
        (["model.npz", "wide.npz"], "DATA must have the 2 coordinates that MODEL takes; wide.npz"),
        (["model.npz", "odd.npz"], "labels of DATA must be those of MODEL (0, 1); got 'cat'."),
        (["model.npz", "points.npz", "--target", "7"], "target must be one of MODEL (0, 1); got"),
        (["model.npz", "points.npz", "--points", "0"], "points must be a whole number of at least"),
        (["model.npz", "points.npz", "--seed", "-1"], "seed must be a whole number"),
        (["model.npz", "points.npz", "--norm", "l7"], "invalid choice: 'l7'"),
        (["model.npz", "points.npz", "--bounds", "0"], "--bounds: expected 2 arguments"),
        (["model.npz", "points.npz", "--label", "z"], "label must be one of X, y; got 'z'."),
        (["model.npz", "points.npz", "--out", "model.npz"], "out must be a folder"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, folder, calls, capsys):
    whole = (folder / "model.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.savez("text.npz", W=[["a"]], b=[0.0], A=[[1.0]], c=[0.0])
    (folder / "header.safetensors").write_bytes(b"\xff" * 200)
    np.savez("huge.npz", **WEIGHTS | {"linear": [[1e308, -1e308]]})
    np.savez("wide.npz", X=np.ones((3, 5)), y=[0, 1, 1])
    np.savez("odd.npz", X=POINTS, y=["cat", "dog", "cat", "dog"])
    code, out, err = command(capsys, "certify", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("featavg: ")
    assert err.count("\n") == 1
    assert message in err
    assert not calls


def test_its_own_file_is_written_again_and_that_of_the_user_is_left_alone(folder, calls, capsys):
    arguments = ["certify", "model.npz", "points.npz", "--out", "out"]
    for _ in range(2):
        assert command(capsys, *arguments)[0] == 0
    np.savetxt(
        folder / "radii.csv", np.c_[POINTS, LABELS], delimiter=",", header="a,b,y", comments=""
    )
    before = (folder / "radii.csv").read_bytes()
    reasons = {"points.npz": "was not written by this command", "radii.csv": "is read"}
    for data, reason in reasons.items():
        code, _, err = command(capsys, "certify", "model.npz", data, "--out", ".")
        assert code == 2
        assert f"radii.csv in it would be overwritten and {reason}; got '.'." in err
        assert (folder / "radii.csv").read_bytes() == before


def test_what_help_says_about_saving_is_true(folder, calls, capsys):
    """The lines are run, on a model whose predictions are known."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    code, out, _ = command(capsys, "certify", "--help")
    assert code == 0
    mlp, linear, module = [line.strip() for line in out.splitlines() if "np.savez(" in line]
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = np.where(X[:, 0] > X[:, 1] ** 2, "in", "out")
    np.savez("circle.npz", X=X, y=y)
    several = MLPClassifier((6,), solver="lbfgs", max_iter=30, random_state=0)
    for model, line in ((several, mlp), (LogisticRegression(), linear)):
        fit_quietly(model, X, y)
        (folder / "model.npz").unlink()
        exec(line, {"np": np, "m": model})  # noqa: S102
        assert command(capsys, "certify", "model.npz", "circle.npz")[0] == 0
        rows = written(folder / "circle-certify" / "radii.csv")
        assert [row["prediction"] for row in rows] == model.predict(X).tolist()
    assert "m.state_dict()" in module


@pytest.mark.vision
def test_what_help_says_about_saving_modules_is_true(folder, calls, capsys):
    torch = pytest.importorskip("torch")
    _, out, _ = command(capsys, "certify", "--help")
    line = next(line.strip() for line in out.splitlines() if "m.state_dict()" in line)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 3))
    exec(line, {"np": np, "m": model})  # noqa: S102
    np.savez("points.npz", X=POINTS)
    assert command(capsys, "certify", "model.npz", "points.npz")[0] == 0
    predicted = model.double()(torch.tensor(POINTS)).argmax(1).tolist()
    rows = written(folder / "points-certify" / "radii.csv")
    assert [int(row["prediction"]) for row in rows] == predicted


def fit_quietly(model, X, y):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)


def test_the_search_itself(folder, capsys):
    code, _, err = command(capsys, "certify", "model.npz", "points.npz")
    assert code == 0, err
    rows = written(folder / "points-certify" / "radii.csv")
    radii = [float(row["upper"]) for row in rows]
    assert radii == pytest.approx([2**0.5, 2**0.5, 0.0, 8**0.5], rel=1e-9)
    assert {row["exact"] for row in rows} == {"true"}
