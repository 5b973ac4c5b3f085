"""IDX, PNG and JSON: what they hold, and what can be wrong with them."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from featavg import InputError
from featavg.datasets.decode import idx, json_labels, png_rows
from support import tiny_datasets as tiny

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
