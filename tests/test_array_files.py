"""Files of arrays: what is written is read, and nothing else is."""

from __future__ import annotations

import hashlib
import io
import pickle
import random
import zipfile

import numpy as np
import pytest

from featavg import InputError
from featavg.array_files import Expected, read_array, read_arrays, write_arrays

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


def test_arrays_that_compress_too_well_are_written_as_they_are(tmp_path):
    path, zeros = tmp_path / "a.npz", np.zeros((100, 100_000))
    write_arrays(path, {"zeros": zeros, "one": 1.0})
    assert path.stat().st_size > zeros.nbytes
    arrays, _ = read_arrays(path, most=10**8, sealed=True)
    assert not arrays["zeros"].any()
    assert arrays["one"] == 1


def test_the_seal_is_the_checksum_of_all_bytes_before_it(tmp_path):
    path = tmp_path / "a.npz"
    checksum = write_arrays(path, ARRAYS)
    content = path.read_bytes()
    assert content.endswith(b"sha256:" + checksum.encode())
    assert hashlib.sha256(content[: -len("sha256:") - 64]).hexdigest() == checksum
    read_arrays(path, most=MOST, checksum=checksum)
    with pytest.raises(InputError, match="another checksum than the one that was saved"):
        read_arrays(path, most=MOST, checksum="0" * 64)
    np.savez(path, **ARRAYS)
    read_arrays(path, most=MOST)
    with pytest.raises(InputError, match="it has no checksum"):
        read_arrays(path, most=MOST, sealed=True)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"a": Expected("f", (2, 3)), "b": Expected("f", ())}, "'b' is missing"),
        ({}, "it must not have an array 'a'"),
        ({"a": Expected("i", (2, 3))}, r"'a' must have the shape \(2, 3\) of kind i; got \(2, 3\)"),
        (
            {"a": Expected("f", (None, 4))},
            r"\(any, 4\) of kind f; got \(2, 3\) of float64",
        ),
        ({"a": Expected("f", (None,))}, r"the shape \(any\) of kind f"),
    ],
)
def test_arrays_that_are_not_as_asked_for_are_refused(expected, message, tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"a": np.zeros((2, 3))})
    right = {"a": Expected("f", (2, None)), "b": Expected("f", (), required=False)}
    assert read_arrays(path, most=MOST, expected=right)[0]["a"].shape == (2, 3)
    with pytest.raises(InputError, match=message):
        read_arrays(path, most=MOST, expected=expected)


def test_an_npy_file_is_read_like_a_member(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, ARRAYS["fortran"])
    np.testing.assert_array_equal(read_array(path, most=MOST), ARRAYS["fortran"])
    with pytest.raises(InputError, match="it must have at most"):
        read_array(path, most=10)


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
    "no text": zipped(a__npy=header((1,), "<U1") + (0x110000).to_bytes(4, "little")),
    "half a character": zipped(a__npy=header((1,), ">U1") + (0xD800).to_bytes(4, "big")),
    "a header of parentheses": zipped(a__npy=b"\x93NUMPY\x01\x00\x04\x00(((("),
    "too many members": zipped(**{f"a{i}__npy": b"" for i in range(2001)}),
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
