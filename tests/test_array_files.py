"""Files of arrays: what is written is read, and nothing else is."""

from __future__ import annotations

import io
import pickle
import random
import zipfile

import numpy as np
import pytest

from featavg import InputError
from featavg.array_files import read_arrays, write_arrays

MOST = 10_000_000
ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "scalar": np.float64(0.5),
    "empty": np.zeros((0, 3)),
    "names": np.array(["a", "länger"]),
    "flags": np.array([True, False]),
}


def test_what_is_read_is_what_was_written(tmp_path):
    path = tmp_path / "folder" / "a.npz"
    write_arrays(path, ARRAYS, {"format": 1, "names": [None, "x"]})
    arrays, about = read_arrays(path, most=MOST)
    assert about == {"format": 1, "names": [None, "x"]}
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == np.asarray(ARRAYS[name]).dtype
        assert array.flags.writeable
    with np.load(path) as same:
        np.testing.assert_array_equal(same["matrix"], ARRAYS["matrix"])


def test_the_same_arrays_are_the_same_bytes(tmp_path):
    for name in "ab":
        write_arrays(tmp_path / name, ARRAYS, {"x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_objects_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="Object arrays"):
        write_arrays(tmp_path / "a.npz", {"a": np.array([object()])})
    assert not list(tmp_path.iterdir())


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("something was executed",))


def zipped(compression=zipfile.ZIP_STORED, **members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


def header(shape, descr="<f8", write=np.lib.format.write_array_header_1_0):
    buffer = io.BytesIO()
    write(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def with_sizes(content, size):
    """Return an archive whose only member claims to have another size."""
    place = content.index(b"PK\x01\x02")
    return content[: place + 24] + size.to_bytes(4, "little") + content[place + 28 :]


def encrypted(content):
    place = content.index(b"PK\x01\x02")
    return content[: place + 8] + b"\x01" + content[place + 9 :]


def objects():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([Bomb()], dtype=object))
    return buffer.getvalue()


BAD = {
    "empty": b"",
    "text": b"not an archive",
    "a pickle": pickle.dumps(Bomb()),
    "objects": objects(),
    "not an array": zipped(a__npy=b"no"),
    "another file": zipped(a__txt=b"no"),
    "no JSON": zipped(about__json=b"{"),
    "NaN": zipped(about__json=b"[NaN]"),
    "huge": zipped(a__npy=header((10**12,))),
    "larger than any memory": zipped(a__npy=header((10**30,))),
    "negative": zipped(a__npy=header((-1,)) + bytes(8)),
    "too long": zipped(a__npy=header((1,)) + bytes(16)),
    "too short": zipped(a__npy=header((3,)) + bytes(16)),
    "no bytes each": zipped(a__npy=header((10**12,), "|V0")),
    "another version": zipped(a__npy=header((1,), write=np.lib.format.write_array_header_2_0)),
    "too much": zipped(zipfile.ZIP_DEFLATED, a__npy=header((MOST,), "|u1") + bytes(MOST)),
    "claims more than it can hold": with_sizes(
        zipped(zipfile.ZIP_DEFLATED, a__npy=header((999_984,)) + bytes(100)), 8_000_000
    ),
    "encrypted": encrypted(zipped(a__npy=header((1,)) + bytes(8))),
    "unknown compression": zipped(zipfile.ZIP_LZMA, a__npy=header((1,)) + bytes(8)).replace(
        b"\x0e\x00", b"\x63\x00"
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_file_of_arrays_is_refused_in_one_sentence(case, tmp_path):
    path = tmp_path / "bad.npz"
    path.write_bytes(BAD[case])
    with pytest.raises(InputError, match=r"^(cannot read bad.npz: |bad.npz must be a )[^\n]*\.$"):
        read_arrays(path, most=MOST)


@pytest.mark.parametrize("name", ["missing.npz", "."])
def test_what_is_no_file(name, tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_arrays(tmp_path / name, most=MOST)


def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("a.npy", "b.npy"):
            archive.writestr(name, header((1,)) + bytes(8))
    content = (tmp_path / "a.npz").read_bytes().replace(b"b.npy", b"a.npy")
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match="the same name"):
        read_arrays(tmp_path / "a.npz", most=MOST)


def test_damage_anywhere_is_noticed_or_harmless(tmp_path):
    write_arrays(tmp_path / "good.npz", ARRAYS, {"x": 1})
    good, rng = (tmp_path / "good.npz").read_bytes(), random.Random(0)  # noqa: S311
    for _ in range(500):
        content = bytearray(good)
        content[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
        (tmp_path / "bad.npz").write_bytes(content[: rng.choice([None, rng.randrange(len(good))])])
        try:
            arrays, _ = read_arrays(tmp_path / "bad.npz", most=MOST)
        except InputError:
            continue
        for name in arrays.keys() & ARRAYS.keys():  # the damage is in a date or a name
            np.testing.assert_array_equal(arrays[name], ARRAYS[name])
