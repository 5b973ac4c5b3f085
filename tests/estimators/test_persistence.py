"""Estimators in files: joblib, and `save` and `load`, which execute nothing."""

from __future__ import annotations

import io
import json
import pickle
import zipfile

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris

import featavg as fa
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
    """Return a copy of a saved file with some arrays, or parts of the description, changed."""
    with np.load(path) as saved:
        arrays = {name: saved[name] for name in saved.files}
    description = json.loads(arrays.pop("about.json")) | (about or {})
    buffer = io.BytesIO()
    np.savez(buffer, **arrays | changes)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("about.json", json.dumps(description))
    return buffer.getvalue()


def test_files_that_are_not_what_they_say_are_refused(tmp_path):
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    AveragingClassifier(max_iter=5).fit(X, Y).save(good)
    bad.write_bytes(rewritten(good))
    assert load(bad).n_features_in_ == 4  # so what is refused below is refused for its change
    contents = [
        b"",
        b"not a zip file",
        good.read_bytes()[:-100],
        pickle.dumps(Bomb()),
        rewritten(good, weights=np.array([Bomb()], dtype=object)),
        rewritten(good, weights=np.zeros((3, 3))),
        rewritten(good, shift=np.zeros(9)),
        rewritten(good, class_of=np.array([0, 0, 0])),
        rewritten(good, frontier_values=np.zeros(2)),
        *(
            rewritten(good, factor=np.array(factor))
            for factor in (0.0, -1.0, np.nan, np.inf, "1.0", 1j, [1.0, 1.0], [1.0, 1.0, 1.0, 0.0])
        ),
        rewritten(good, about={"format": "another"}),
        rewritten(good, about={"kind": "Popen"}),
        rewritten(good, about={"parameters": [["shell", True]]}),
    ]
    for content in contents:
        bad.write_bytes(content)
        with pytest.raises(fa.InputError):
            load(bad)
    with pytest.raises(fa.InputError, match="cannot read"):
        load(tmp_path / "missing.npz")


def test_what_cannot_be_kept_is_refused(tmp_path):
    model = AveragingClassifier(max_iter=5).fit(X, Y)
    model.set_params(width=object())
    with pytest.raises(fa.InputError, match="numbers or strings"):
        model.save(tmp_path / "model.npz")
