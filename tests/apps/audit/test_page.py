from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from featavg.apps.audit import page as page_module
from featavg.apps.audit.page import Source, page

SOURCE = Source("points.csv", "featavg audit points.csv --label='a b' --seed=0")


def test_each_picture_has_one_frame_a_title_and_a_sentence(audited):
    text = page(audited, SOURCE)
    figures = re.findall(r"<figure>(.*?)</figure>", text, re.DOTALL)
    assert len(figures) == text.count("<img") == 2
    for figure in figures:
        assert re.search(r"<figcaption>[A-Z][^<]{10,}</figcaption><p[^>]*>[^<]{40,}\.</p>", figure)


def test_a_title_is_text_and_not_also_in_the_picture(audited, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        page_module, "rendered", lambda figure, kind: drawn.append(figure) or b"picture"
    )
    text = page(audited, SOURCE)
    assert text.count(f"<figcaption>{audited.view().title}</figcaption>") == 1
    assert len(drawn) == 2
    assert not any(axes.get_title() for figure in drawn for axes in figure.axes)


def test_names_of_classes_and_points_cannot_inject_markup(audited):
    hostile = replace(audited, subclasses={"<script>": 3, "&": 3}, classes=("<script>", "&"))
    ids = ["<script>alert(1)</script>"] * 400
    source = Source("<script>", "featavg audit '<script>'", ids, "<script>")
    assert "<script>" not in page(hostile, source, ["<script>"])


def test_the_page_says_how_it_was_made_and_what_to_do(audited):
    ids = [f"point-{i}" for i in range(400)]
    text = page(audited, replace(SOURCE, ids=ids, id_name="id"))
    assert "featavg audit points.csv --label=&#39;a b&#39; --seed=0" in text
    assert "Seed 0," in text
    next_ones = text.split("What to label next")[1].split("The weakest points")[0]
    for i in audited.suggested.index[:12]:
        assert f'<th scope="row">point-{i}</th>' in next_ones
    assert "(–)" not in text


def test_a_bound_is_marked(audited):
    assert "≥ " not in page(audited, SOURCE).split("is marked ≥")[1]
    bounds = replace(audited.fine, exact=np.zeros(audited.measured, dtype=bool))
    text = page(replace(audited, fine=bounds), SOURCE)
    assert text.split("is marked ≥")[1].count("≥ ") == 12  # of the points that are listed


def test_without_suggestions_the_page_says_why(audited):
    none = replace(
        audited, suggested=replace(audited.suggested, index=np.zeros(0, int), classes=[])
    )
    none = replace(none, suggested=replace(none.suggested, subclasses=[]))
    assert "not expected to help" in page(none, SOURCE)
    assert "Every point has a finer label" in page(replace(none, given=True), SOURCE)
