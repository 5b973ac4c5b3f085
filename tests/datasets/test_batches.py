"""Pickled batches, read without the unpickler."""

from __future__ import annotations

import os
import pickle
import tracemalloc

import numpy as np
import pytest

from featavg import InputError
from featavg.datasets.decode import read_batch
from support import tiny_datasets as tiny


def refused(content, found):
    with pytest.raises(InputError, match=f"a batch must be a pickle of arrays, .* got {found}"):
        read_batch("a batch", content, count=1, pixels=3)


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_refused_and_not_executed(protocol, tmp_path):
    target = tmp_path / "executed"
    for harmful in (
        tiny.Harmful(os.system, f"touch {target}"),
        tiny.Harmful(eval, f"open({str(target)!r}, 'w')"),
        tiny.Harmful(getattr, "text", "upper"),
        tiny.Harmful(np.load, str(target)),
    ):
        refused(pickle.dumps({"data": harmful, "labels": [1]}, protocol=protocol), "the ")
    assert not target.exists()


def test_the_pickle_would_have_been_executed_by_the_ordinary_unpickler(tmp_path):
    target = tmp_path / "executed"
    pickle.loads(pickle.dumps(tiny.Harmful(os.mkdir, str(target)), protocol=2))  # noqa: S301
    assert target.exists()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "one that cannot be read"),
        (b"\x80\x02}", "one that cannot be read"),
        (b"\x80\x02N" + b"r\xff\xff\xff\x7f.", "an index that would need much memory"),
        (b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"x.", "one that cannot be read"),
        (b"\x80\x02T\xff\xff\xff\x7fx.", "one that cannot be read"),
        (b"\x80\x02cnumpy\nfromfile\n.", "the name numpy.fromfile"),
        (b"\x80\x02cnumpy.core.multiarray\nscalar\n.", "the name numpy.core.multiarray.scalar"),
        (b"\x80\x02cbuiltins\nbytearray\n.", "the name builtins.bytearray"),
        (b"\x80\x02]2.", "the opcode DUP"),
        (b"\x80\x02K\x01Q.", "the opcode BINPERSID"),
    ],
)
def test_pickles_that_are_not_plain_or_ask_for_memory(content, found):
    tracemalloc.start()
    try:
        refused(content, found)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000  # some ask for gigabytes
    finally:
        tracemalloc.stop()


def test_an_array_that_claims_another_size_is_refused():
    images = tiny.expected("cifar10")["train_images"][:2].reshape(2, -1)
    good = tiny.python2_batch(images, [6, 9])
    read_batch("a batch", good, count=2, pixels=3072)
    shape = b"M\x02\x00M\x00\x0c\x86"
    for bad in (
        good.replace(shape, b"M\x02\x00M\x01\x0c\x86"),
        good.replace(shape, b"M\xff\xffM\xff\xff\x86"),
        good.replace(b"U\x02u1", b"U\x02O8"),
        tiny.python2_batch(images[:1], [6, 9]),
        pickle.dumps({"labels": [6, 9]}, protocol=2),
        pickle.dumps({"data": [1, 2], "labels": [6, 9]}, protocol=2),
        pickle.dumps({"data": np.asfortranarray(images), "labels": [6, 9]}, protocol=2),
    ):
        assert bad != good
        with pytest.raises(InputError, match="a batch must contain the bytes of 2 images"):
            read_batch("a batch", bad, count=2, pixels=3072)
    for labels in ([6], [6, 9, 9], [6, "nine"], [6, 300], (6, 9)):
        content = pickle.dumps({"data": images, "labels": labels}, protocol=2)
        with pytest.raises(InputError, match="a batch must contain a list of 2 labels"):
            read_batch("a batch", content, count=2, pixels=3072)
    with pytest.raises(InputError, match="a batch must contain a dictionary"):
        read_batch("a batch", pickle.dumps([images], protocol=2), count=2, pixels=3072)


def test_pickles_of_python_3_give_the_same_arrays():
    images = tiny.expected("cifar10")["train_images"].reshape(5, -1)
    content = pickle.dumps({"data": images, "labels": [6, 9, 9, 1, 6]}, protocol=2)
    found = read_batch("a batch", content, count=5, pixels=3072)
    np.testing.assert_array_equal(found["images"], images)
    assert found["labels"].tolist() == [6, 9, 9, 1, 6]
