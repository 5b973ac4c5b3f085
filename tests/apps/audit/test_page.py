from __future__ import annotations

from dataclasses import replace

from featavg.apps.audit.page import page


def test_each_picture_has_one_frame(audited):
    text = page(audited, "x")
    assert text.count("<figure>") == text.count("<img") == 2


def test_names_of_classes_cannot_inject_markup(audited):
    hostile = replace(audited, subclasses={"<script>": 3, "&": 3}, classes=("<script>", "&"))
    assert "<script>" not in page(hostile, "x")
