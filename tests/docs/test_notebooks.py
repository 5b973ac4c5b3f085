"""The notebooks run, and every function of `featavg.plot` has a picture in the gallery."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import featavg as fa
from support import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from gallery import example
from notebook_pages import Cell, as_markdown, cells, execute

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_without_a_warning_and_draws(path):
    figures = [figure for _, output in execute(path) for figure in output.figures]
    assert len(figures) >= 2
    for title, content in figures:
        assert title, "the text that stands for the picture"
        picture = np.asarray(Image.open(io.BytesIO(content)).convert("L"))
        assert picture.std() > 5, "not blank"


def test_notebooks_have_pages_and_pictures_in_the_gallery():
    names = {path.stem for path in NOTEBOOKS}
    assert len(names) == 4
    assert names == {path.stem for path in (ROOT / "docs" / "notebooks").glob("*.md")}
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert set(re.findall(r"{notebook-picture} (\w+)", text)) == names
    assert set(re.findall(r"{plot-example} (\w+)", text)) == set(fa.plot.__all__)


@pytest.mark.parametrize("name", fa.plot.__all__)
def test_the_example_of_every_picture_draws_it(name):
    code, title, content = example(name)
    assert f"fa.plot.{name}(" in code
    assert title
    assert content.startswith(b"\x89PNG")


def test_cells_and_what_they_show(tmp_path):
    text = (
        "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nimport featavg as fa\n\nprint('printed')\n"
        "[1, 2]\n\n# %%\nx = 3\n\n# %%\nfa.BinaryNet([[1.0], [2.0]])\n"
        "# %%\nfrom matplotlib import pyplot as plt\nplt.plot([1, 2])[0].axes.set_title('A line')\n"
    )
    assert cells(text)[:2] == [
        Cell("# Title\n\nText.", 2, is_text=True),
        Cell("import featavg as fa\n\nprint('printed')\n[1, 2]", 7),
    ]
    path = tmp_path / "small.py"
    path.write_text(text)
    page = as_markdown(path, tmp_path / "pictures", "/here")
    assert page.startswith("# Title\n\nText.\n\n```python\nimport featavg as fa\n")
    assert "```text\nprinted\n[1, 2]\n```" in page
    assert page.count("```text") == 1
    assert "```{raw} html\n<figure" in page
    assert page.endswith("![A line](/here/small-1.png)\n")
    assert [p.name for p in (tmp_path / "pictures").iterdir()] == ["small-1.png"]


def test_an_error_names_the_line_of_the_notebook(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("# %%\nx = 1\n\n# %%\ny = 2\n1 / 0\n")
    with pytest.raises(ZeroDivisionError) as caught:
        list(execute(path))
    last = caught.traceback[-1]
    assert Path(last.path) == path
    assert last.lineno + 1 == 6
