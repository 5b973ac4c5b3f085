from __future__ import annotations

import io
import pickle
import re
import sys
import tracemalloc
import zipfile
from functools import partial

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


class Harmful:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"not an archive", "have the format of its suffix"),
        ("a.csv", b"x,y\n1,2\n3\n", "row 3 of a.csv has 1"),
        ("a.csv", b"x\n1\n3,4\n", "FILE must have 1 value in each row; row 3 of a.csv has 2."),
        ("a.csv", b"a;b;y\n1,5;2,5;u\n", "have commas between values; a.csv has semicolons: save"),
        ("a.csv", b"a\tb\ty\n1\t2\tu\n", "have commas between values; a.csv has tabs: save it"),
        ("a.csv", "größe,y\n1,2\n".encode("latin-1"), "FILE must be encoded in UTF-8; a.csv is"),
        ("a.csv", b"x,y\n", "rows of values"),
        ("a.csv", b"\n\n\n", "FILE must have a row of names and rows of values; got a.csv"),
        ("a.csv", b"x,z\n1,2\n", "label must be named because the file has none"),
        ("a.csv", b"x,y\nred,2\n", "must have numbers only; 'x' has 'red' in row 2 of a.csv"),
        ("a.csv", b"x,y\n\xff\xfe,2\n", "FILE must be encoded in UTF-8"),
        ("a.parquet", b"PAR1 no PAR1", "have the format of its suffix"),
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
    with pytest.raises(InputError, match="y must hold numbers or text; got an array of Python obj"):
        read(tmp_path / "a.npz")
    (tmp_path / "X.npy").write_bytes(pickle.dumps(Harmful()))
    np.save(tmp_path / "y.npy", np.ones(2))
    with pytest.raises(InputError, match="have the format of its suffix"):
        read(tmp_path / "X.npy")


def test_objects_in_an_npy_file_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((2, 2)))
    np.save(tmp_path / "y.npy", np.array(["a", None], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"y.npy must hold numbers or text"):
        read(tmp_path / "X.npy")


def test_an_array_of_objects_that_is_not_asked_for_is_left_alone(tmp_path):
    more = np.array([Harmful()], dtype=object)
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.arange(2), more=more)
    assert read(tmp_path / "a.npz").x.shape == (2, 2)


def compressed_zeros(path):
    """Write 80 MB, which stand for the gigabytes that would be slow to make."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=np.zeros((1000, 10_000)), y=np.zeros(1000))
    path.write_bytes(buffer.getvalue())
    assert path.stat().st_size < 200_000


def equal_values(path):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {name: pa.repeat(1.0, 3_000_000) for name in "abcy"}
    parquet.write_table(pa.table(columns), path)
    assert path.stat().st_size < 100_000


def long_texts(path):
    import pyarrow as pa
    from pyarrow import parquet

    texts = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0), 20_000), ["x" * 5000])
    parquet.write_table(pa.table({"a": pa.repeat(1.0, 20_000), "y": texts}), path)
    assert path.stat().st_size < 100_000


def lists(path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [[1.0], [2.0]], "y": [0, 1]}), path)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("a.npz", compressed_zeros, "it must hold at most 67.1 MB; got 80 MB"),
        ("a.parquet", equal_values, "it must have at most 8,388,608 values; got 12,000,000"),
        ("a.parquet", long_texts, "its texts must have at most 67,108,864 characters; got 100,000"),
        ("a.parquet", lists, "'a' must be a column of numbers or texts; got list"),
    ],
)
def test_a_small_file_that_would_take_much_memory_is_refused(name, write, message, tmp_path):
    write(tmp_path / name)
    tracemalloc.start()
    with pytest.raises(InputError, match=message):
        read(tmp_path / name)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("role", ["label", "subclass"])
def test_one_long_label_is_refused_before_all_are_as_long(name, role, tmp_path, capsys):
    columns = {"x": range(3000), "label": ["a", "b"] * 1500, "subclass": ["c", "d"] * 1500}
    columns[role][7] = "long" * 2000
    frame = pd.DataFrame(columns)
    write = {"a.csv": partial(frame.to_csv, index=False), "a.parquet": frame.to_parquet}[name]
    write(tmp_path / name)
    tracemalloc.start()
    assert main(["audit", str(tmp_path / name)]) == 2
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
    said = capsys.readouterr().err
    assert f"column '{role}' has one of 8,000 characters in row" in said
    assert said.count("\n") == 1
    assert len(said) < 300


def test_one_long_id_costs_no_more_than_its_length(tmp_path):
    ids = [f"p{i}" for i in range(3000)]
    ids[7] = "long" * 2000
    frame = pd.DataFrame({"x": range(3000), "label": ["a", "b"] * 1500, "id": ids})
    frame.to_csv(tmp_path / "a.csv", index=False)
    tracemalloc.start()
    assert read(tmp_path / "a.csv", id="id").ids == ids
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def test_a_name_of_a_column_that_is_very_long_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(f"{'x' * 100_000},y\n1,0\n2,1\n")
    with pytest.raises(InputError, match=r"at most 1,000 characters; a.csv has '[x]{58}…\.$"):
        read(tmp_path / "a.csv")


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize("header", ["((((", "(" * 5000, "{'descr': '<f8'", "[" * 9000, "1" * 5000])
def test_a_header_that_python_cannot_parse_is_one_sentence(header, tmp_path, capsys):
    (tmp_path / "X.npy").write_bytes(npy(header))
    np.save(tmp_path / "y.npy", np.arange(2))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(header))
    for name in ("X.npy", "a.npz"):
        assert main(["audit", str(tmp_path / name)]) == 2
        said = capsys.readouterr().err
        assert "X" in said
        assert said.count("\n") == 1


def test_a_field_of_csv_that_is_too_long_is_one_sentence(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("x,y\n1," + "a" * 131_073 + "\n")
    assert main(["audit", str(tmp_path / "a.csv")]) == 2
    said = capsys.readouterr().err
    assert "field larger than field limit" in said
    assert said.count("\n") == 1


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
