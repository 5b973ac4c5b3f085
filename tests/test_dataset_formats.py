"""IDX, PNG, JSON and pickles: what they hold, and everything that can be wrong with them."""

from __future__ import annotations

import io
import os
import pickle
import tracemalloc

import numpy as np
import pytest
from PIL import Image

import tiny_datasets as tiny
from featavg import InputError
from featavg.datasets.batches import read_batch
from featavg.datasets.decode import idx, json_labels, png_rows

IMAGES = "train-images-idx3-ubyte"


def test_idx_of_another_shape_or_type():
    content = tiny.content("mnist", IMAGES)
    assert idx("a file", content, (12, 28, 28)).shape == (12, 28, 28)
    for shape in [(11, 28, 28), (12, 784), (12, 28, 29)]:
        with pytest.raises(InputError, match="a file must be an IDX file of bytes with the shape"):
            idx("a file", content, shape)
    for wrong in (content[:2] + b"\x0d" + content[3:], content[:-1], content + b"\0", b""):
        with pytest.raises(InputError, match="must be an IDX file"):
            idx("a file", wrong, (12, 28, 28))


def test_png_of_another_size_or_kind():
    content = tiny.content("cifar10", "data_batch_1.png")
    assert png_rows("a file", content, 3, (3, 32, 32)).shape == (3, 3, 1024)
    picture = Image.open(io.BytesIO(content))
    wrong = [b"", content[1:], b"GIF89a"]
    for changed, kind in (
        (picture.crop((0, 0, 1024, 2)), "PNG"),
        (picture.resize((512, 3)), "PNG"),
        (picture.convert("L"), "PNG"),
        (picture.convert("RGBA"), "PNG"),
        (picture.convert("P"), "PNG"),
        (picture, "JPEG"),
        (picture, "TIFF"),
    ):
        buffer = io.BytesIO()
        changed.save(buffer, kind)
        wrong.append(buffer.getvalue())
    # a header that promises a thousand million rows, which must not be made room for
    wrong.append(content[:20] + (10**9).to_bytes(4, "big") + content[24:])
    for bad in wrong:
        with pytest.raises(InputError, match=r"a file must be an RGB picture \(PNG\) of 3 rows"):
            png_rows("a file", bad, 3, (3, 32, 32))
    for bad in (content[:-100], content[:60]):  # what goes unnoticed here, checksums notice
        with pytest.raises(InputError, match="a file is truncated or corrupt"):
            png_rows("a file", bad, 3, (3, 32, 32))


@pytest.mark.parametrize(
    "content", [b"", b"[1,2", b"[1]", b"[1,2.0]", b"[1,true]", b"[1,-1]", b"[1,256]", b'{"a":1}']
)
def test_labels_that_are_not_a_list_of_whole_numbers(content):
    with pytest.raises(InputError, match="a file must contain a list of 2 labels"):
        json_labels("a file", content, 2)


def test_deep_json_is_refused():
    with pytest.raises(InputError, match="must contain a list"):
        json_labels("a file", b"[" * 100_000, 2)


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
    found, labels = read_batch("a batch", content, count=5, pixels=3072)
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [6, 9, 9, 1, 6]
