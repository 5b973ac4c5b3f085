"""Files that are not what they say, cost too much to read, or carry code."""

from __future__ import annotations

import io
import pickle
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest

from featavg import InputError
from featavg.apps.cli.main import main
from featavg.auditing.files import read


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
