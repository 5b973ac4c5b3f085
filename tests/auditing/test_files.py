"""Reading points and labels from files: forms, columns, ids and what is refused."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest

from featavg import InputError
from featavg.apps.cli.main import main
from featavg.auditing.files import read


@pytest.fixture
def files(tmp_path, six_clusters):
    """The same points and labels in every form."""
    x, y = six_clusters.x[:40, :3], np.where(six_clusters.y[:40] > 0, "cat", "dog")
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(label=y)
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    np.savez(tmp_path / "p.npz", X=x, y=y)
    np.save(tmp_path / "X_train.npy", x)
    np.save(tmp_path / "y_train.npy", y)
    return tmp_path


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.npz", "X_train.npy"])
def test_every_form_gives_the_same(name, files, six_clusters):
    table = read(files / name)
    np.testing.assert_allclose(table.x, six_clusters.x[:40, :3])
    assert table.y.tolist() == ["cat" if y > 0 else "dog" for y in six_clusters.y[:40]]
    assert table.subclass is None


def test_columns_can_be_named(files):
    table = read(files / "p.csv", label="label", subclass="a")
    assert table.x.shape == (40, 2)
    assert len(table.subclass) == 40
    with pytest.raises(InputError, match="label must be one of"):
        read(files / "p.csv", label="nope")


def _frame(**changes):
    """Return twelve points of two classes; a value for a column replaces its fourth one."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["a", "b"])
    frame["y"] = ["u", "v"] * 6
    for name, value in changes.items():
        if not isinstance(value, str | float | None):
            frame[name] = value
            continue
        frame[name] = frame[name].astype(object)
        frame.loc[3, name] = value
    return frame


UNUSABLE = [
    (
        "p.parquet",
        _frame(a=np.nan).astype({"a": float}),
        r"1 value is missing in p.parquet \(row 4, column 'a'\): fill in .* with --drop a\.",
    ),
    ("p.csv", _frame(a="nan"), r"1 value is missing in p.csv \(row 5, column 'a'\)"),
    ("p.csv", _frame(a=""), r"1 value is missing in p.csv \(row 5, column 'a'\)"),
    (
        "p.csv",
        _frame(a=["NA", "1"] * 6, b=[None, 1.0] * 6),
        r"12 values are .* \(row 2, column 'a'; row 2, column 'b'; row 4, column 'a'; …\)"
        ".*leave out the columns with --drop a --drop b",
    ),
    ("p.csv", _frame(a="inf"), "column 'a' has inf in row 5 of p.csv: .*with --drop a"),
    ("p.csv", _frame(a="T-7"), "'a' has 'T-7' in row 5.*with --drop a, or with --id a if it names"),
    (
        "p.npz",
        _frame(a=np.inf),
        "features must be finite; 1 value is not: inf in row 3, column 0 of the matrix",
    ),
    ("p.npz", _frame(y=np.linspace(0, 1, 12)), "label must have classes.*got continuous"),
    ("p.parquet", _frame(y=np.linspace(0, 1, 12)), "label must have classes.*got continuous"),
    ("p.parquet", _frame(y=None), "label must have a value for every.*1 missing, in row 4"),
    ("p.parquet", _frame(y=[0.0, 1, np.nan] * 4), "got 4 missing, the first in row 3"),
    ("p.npz", _frame(y=[0.0, 1, np.nan] * 4), "got 4 missing, the first at index 2"),
    ("p.csv", _frame(y=""), "label must have a value for every.*1 missing, in row 5 of p.csv"),
    ("p.csv", _frame(subclass=["k", ""] * 6), "subclass must have a value.*6 missing"),
    ("p.csv", _frame().set_axis(["a", "a", "y"], axis=1), "different name for each.*'a' 2 times"),
    ("p.npz", _frame(a=np.ones(12), b=np.zeros(12)), "X must have points that differ; got 9"),
]


@pytest.mark.parametrize(("name", "frame", "message"), UNUSABLE)
def test_the_command_refuses_unusable_values_in_one_sentence(
    name, frame, message, tmp_path, capsys
):
    file = tmp_path / name
    if name.endswith("csv"):
        frame.to_csv(file, index=False)
    elif name.endswith("parquet"):
        frame.to_parquet(file)
    else:
        labels = frame.y.to_numpy()
        x = frame[["a", "b"]].to_numpy(float)
        np.savez(file, X=x, y=labels.astype(str) if labels.dtype == object else labels)
    assert main(["audit", str(file)]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [file]


def test_columns_of_the_same_name_are_refused_in_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table([pa.array([1.0, 2]), pa.array([1.0, 2]), pa.array(["u", "v"])], list("aay"))
    parquet.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(InputError, match="'a' 2 times"):
        read(tmp_path / "p.parquet")


def test_an_index_without_a_name_is_no_feature(tmp_path):
    frame = _frame()
    frame.to_csv(tmp_path / "p.csv")
    shuffled = frame.sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "q.csv")
    shuffled.to_parquet(tmp_path / "q.parquet")
    for name, called in (
        ("p.csv", "without a name"),
        ("q.csv", "without a name"),
        ("q.parquet", "__index_level_0__"),
    ):
        table = read(tmp_path / name)
        assert table.x.shape == (12, 2)
        assert table.notes == (f"The column {called} only numbers the rows and is left out.",)
    frame.rename(columns={"a": ""}).to_csv(tmp_path / "r.csv", index=False)  # measurements
    assert read(tmp_path / "r.csv").x.shape == (12, 2)


def test_rows_are_counted_as_in_the_file(tmp_path):
    (tmp_path / "p.csv").write_text("\ufeffy,a\nu,1\n\nv,nan\n", encoding="utf-8")
    with pytest.raises(InputError, match="row 4, column 'a'"):
        read(tmp_path / "p.csv")


def test_messages_list_the_last_columns_and_no_name_twice(tmp_path):
    names = [f"feature{i}" for i in range(40)] + ["species"]
    (tmp_path / "p.csv").write_text(",".join(names) + "\n" + ",".join("1" * 41) + "\n")
    for label in (None, "kind"):
        with pytest.raises(InputError, match="feature0, .*, …, .*, species"):
            read(tmp_path / "p.csv", label=label)
    np.save(tmp_path / "X.npy", np.ones((2, 2)))
    with pytest.raises(InputError, match=r"looked for y.npy, X_y.npy\."):
        read(tmp_path / "X.npy")


def test_labels_that_are_not_needed(tmp_path):
    x = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "p.npz", X=x)
    np.save(tmp_path / "p.npy", x)
    (tmp_path / "p.csv").write_text("a,b\n0,1\n2,3\n4,5\n")
    for name in ("p.npz", "p.npy", "p.csv"):
        table = read(tmp_path / name, need_labels=False)
        assert (table.x == x).all()
        assert (table.y, table.label) == (None, "")
        with pytest.raises(InputError, match="label must be"):
            read(tmp_path / name)
        with pytest.raises(InputError, match="label must be"):
            read(tmp_path / name, label="z", need_labels=False)


def test_labels_that_are_not_needed_are_read_all_the_same(tmp_path):
    np.savez(tmp_path / "p.npz", X=np.eye(2), y=[0, 1])
    assert read(tmp_path / "p.npz", need_labels=False).y.tolist() == [0, 1]
    np.savez(tmp_path / "p.npz", X=np.eye(2), y=[0, 1], label=[1, 0])
    with pytest.raises(InputError, match="more than one of"):
        read(tmp_path / "p.npz", need_labels=False)


def with_ids(path):
    frame = _frame().assign(ticket_id=[f"T-{i}" for i in range(12)], note="seen")
    frame.to_csv(path / "p.csv", index=False)
    frame.to_parquet(path / "p.parquet")
    return frame


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_ids_and_dropped_columns_are_no_features(name, tmp_path):
    frame = with_ids(tmp_path)
    table = read(tmp_path / name, id="ticket_id", drop=["note"])
    np.testing.assert_allclose(table.x, frame[["a", "b"]])
    assert list(table.ids) == frame.ticket_id.tolist()
    assert (table.id_name, table.notes) == ("id", ())
    without = read(tmp_path / name, drop=["note", "ticket_id", "b"])
    np.testing.assert_allclose(without.x, frame[["a"]])
    assert without.id_name == "row"
    assert list(without.ids) == (list(range(2, 14)) if name == "p.csv" else list(range(1, 13)))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"drop": ["notes"]}, r"drop must be one of a, b, y, ticket_id, note; got 'notes' \(did"),
        ({"id": "ticket"}, r"id must be one of .*; got 'ticket' \(did you mean 'ticket_id'\?\)"),
        ({"id": "y"}, "label, subclass and id must have different names; got y, y"),
        ({"drop": ["y"]}, "label must be named because the file has none"),
        ({"drop": ["note"]}, "'ticket_id' has 'T-0' in row 2 of p.csv: .*--id ticket_id"),
        ({"drop": ["a", "b", "note", "ticket_id"]}, "FILE must have columns of features"),
    ],
)
def test_names_that_do_not_fit(named, message, tmp_path):
    with_ids(tmp_path)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "p.csv", **named)


def test_arrays_have_ids_and_no_columns(tmp_path):
    np.savez(tmp_path / "p.npz", X=np.eye(2), y=[0, 1], name=["u", "v"])
    table = read(tmp_path / "p.npz", id="name")
    assert (table.ids, table.id_name) == (["u", "v"], "id")
    assert list(read(tmp_path / "p.npz").ids) == [0, 1]
    np.save(tmp_path / "X.npy", np.eye(2))
    np.save(tmp_path / "y.npy", np.arange(2))
    np.save(tmp_path / "names.npy", np.array(["u", "v", "w"]))
    with pytest.raises(InputError, match="id must have one value for each of the 2 points"):
        read(tmp_path / "X.npy", id="names.npy")
    with pytest.raises(InputError, match="drop must name columns of a csv.*'y' for p.npz"):
        read(tmp_path / "p.npz", drop=["y"])


def test_numbers_that_look_like_ids_are_mentioned(tmp_path):
    _frame(patient_id=np.arange(12) + 700).to_csv(tmp_path / "p.csv", index=False)
    (note,) = read(tmp_path / "p.csv").notes
    assert note.startswith("The column patient_id has a different whole number in each row")
    assert note.endswith("--id patient_id or --drop patient_id leaves it out.")
    _frame(patient_id=np.arange(12) // 2).to_csv(tmp_path / "p.csv", index=False)
    assert read(tmp_path / "p.csv").notes == ()  # a measurement
    (note,) = read(tmp_path / "p.csv", id="patient_id").notes
    assert note == "The column patient_id is not unique: 6 of its values are repeated."


def test_flags_in_messages_can_be_pasted(tmp_path):
    (tmp_path / "p.csv").write_text("it's here,y\nred,u\n1,v\n")
    with pytest.raises(InputError, match=re.escape("""--drop 'it'"'"'s here'""")):
        read(tmp_path / "p.csv")


def test_parquet_without_pyarrow_names_the_extra_that_has_nothing_else(tmp_path, monkeypatch):
    _frame().to_parquet(tmp_path / "p.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"Parquet needs PyArrow: pip install 'featavg\[data\]'"):
        read(tmp_path / "p.parquet")
