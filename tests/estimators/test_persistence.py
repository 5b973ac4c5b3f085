"""Estimators in files: joblib, and `save` and `load`, which execute nothing."""

from __future__ import annotations

import io
import pickle
import tracemalloc

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris

import featavg as fa
from featavg.array_files import read_arrays, write_arrays
from featavg.estimators import AveragingClassifier, DecoupledClassifier, load

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def models():
    yield AveragingClassifier(random_state=0, max_iter=20).fit(X, Y)
    yield AveragingClassifier(random_state=0, max_iter=20).fit(X, Y == 0)
    yield DecoupledClassifier({"setosa": 2}, random_state=np.random.RandomState(0)).fit(X, NAMES[Y])
    yield DecoupledClassifier(readout="probability", max_iter=9).fit(X, Y == 0, subclass=NAMES[Y])
    yield DecoupledClassifier(2, max_iter=9).fit(X, NAMES.astype(object)[Y])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["save", "joblib"])
def test_what_is_read_is_what_was_written(tmp_path, how):
    path = tmp_path / "model.npz"
    for model in models():
        if how == "save":
            model.save(path)
            again = load(path)
        else:
            joblib.dump(model, path)
            again = joblib.load(path)
        assert type(again) is type(model)
        assert again.classes_.dtype == model.classes_.dtype
        for method in ("predict", "predict_proba", "decision_function"):
            assert (getattr(again, method)(X[::10]) == getattr(model, method)(X[::10])).all()
        assert (again.certify(X[::10]).lower == model.certify(X[::10]).lower).all()
        assert repr(again.frontier_) == repr(model.frontier_)
        assert again.n_features_in_ == 4
        if isinstance(model, DecoupledClassifier):
            assert repr(again.subclasses_) == repr(model.subclasses_)
            assert (again.subclasses_.labels == model.subclasses_.labels).all()
            assert again.subclasses_.names == model.subclasses_.names
        parameters = again.get_params()
        assert {k: v for k, v in parameters.items() if k != "random_state"} == {
            k: v for k, v in model.get_params().items() if k != "random_state"
        }


def test_feature_names_are_kept(tmp_path):
    frames = pytest.importorskip("pandas")
    frame = frames.DataFrame(X, columns=["a", "b", "c", "d"])
    AveragingClassifier(max_iter=5).fit(frame, Y).save(tmp_path / "model.npz")
    assert list(load(tmp_path / "model.npz").feature_names_in_) == ["a", "b", "c", "d"]


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("something was executed",))


def rewritten(path, about=None, **changes):
    """Write a saved file again with some arrays, or parts of the description, changed."""
    arrays, description = read_arrays(path, most=10**6)
    bad = path.with_name("bad.npz")
    write_arrays(bad, arrays | changes, description | (about or {}))
    return bad


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "good.npz"
    AveragingClassifier(max_iter=5).fit(X, Y).save(path)
    return path


def frontier(**changes):
    usual = {"points": 9, "radius_points": 9, "held_out": True, "robustness": 1.0, "knob": "steps"}
    return {"frontier": usual | changes}


CHANGES = {
    "weights": {"weights": np.zeros((3, 3))},
    "shift": {"shift": np.zeros(9)},
    "text as shift": {"shift": np.array(["0", "1", "2", "3"])},
    "shift that is not finite": {"shift": np.array([0, 0, 0, np.nan])},
    "class_of": {"class_of": np.array([0, 0, 0])},
    "class_of + 10^9": {"class_of": np.array([0, 1, 2]) + 10**9},
    "class_of that is negative": {"class_of": np.array([0, 1, -1])},
    "frontier_values": {"frontier_values": np.zeros(2)},
    "another array": {"more": np.zeros(2)},
    **{
        f"factor {factor}": {"factor": np.array(factor)}
        for factor in (0.0, -1.0, np.nan, np.inf, "1.0", 1j, [1.0, 1.0], [1.0, 1.0, 1.0, 0.0])
    },
    "format": {"about": {"format": "another"}},
    "kind": {"about": {"kind": "Popen"}},
    "parameters": {"about": {"parameters": [["shell", True]]}},
    "frontier of 10^400 points": {"about": frontier(points=10**400)},
    "frontier of 10^400": {"about": frontier(robustness=10**400)},
    "frontier of text": {"about": frontier(points="9")},
    "frontier of nothing": {"about": {"frontier": []}},
    "numbers": {"about": {"numbers": {"n_iter_": "x"}}},
    "head": {"about": {"head": None}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_are_not_what_they_say_are_refused_in_one_sentence(saved, change):
    assert load(rewritten(saved)).n_features_in_ == 4  # so that it is the change that is refused
    bad = rewritten(saved, **CHANGES[change])
    tracemalloc.start()
    with pytest.raises(fa.InputError, match=r"^(cannot read bad|bad.npz must be)[^\n]{0,400}\.$"):
        load(bad)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_files_of_others_are_refused(saved, tmp_path):
    bad = tmp_path / "bad.npz"
    objects = io.BytesIO()
    np.savez(objects, weights=np.array([Bomb()], dtype=object))
    for content in (b"", b"no zip", saved.read_bytes()[:-100], pickle.dumps(Bomb())):
        bad.write_bytes(content)
        with pytest.raises(fa.InputError):
            load(bad)
    bad.write_bytes(objects.getvalue())
    with pytest.raises(fa.InputError, match="no checksum"):
        load(bad)
    with pytest.raises(fa.InputError, match="cannot read"):
        load(tmp_path / "missing.npz")


def test_what_cannot_be_kept_is_refused(tmp_path):
    model = AveragingClassifier(max_iter=5).fit(X, Y)
    model.set_params(width=object())
    with pytest.raises(fa.InputError, match="numbers or strings"):
        model.save(tmp_path / "model.npz")
