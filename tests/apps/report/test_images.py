from __future__ import annotations

import pytest

from featavg.apps.report.images import smallest_image
from featavg.apps.report.page import write_report
from support.report_runs import Page, run_folder, svg


def png(size: int) -> bytes:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (20).to_bytes(4) + (10).to_bytes(4)
    return header.ljust(size, b"\x00")


def test_the_smaller_figure_is_inside_the_page_and_a_link_is_not_followed(tmp_path):
    folder = run_folder(tmp_path)
    (folder / "figure.svg").write_text(svg("x" * 500))
    (folder / "figure.png").write_bytes(png(400))
    assert smallest_image(folder).source.startswith("data:image/png;base64,")
    (folder / "figure.png").write_bytes(png(900))
    image = smallest_image(folder)
    assert image.source.startswith("data:image/svg+xml;base64,")
    assert (image.width, image.height) == (72, 36)
    (folder / "figure.svg").rename(tmp_path / "outside.svg")
    (folder / "figure.svg").symlink_to(tmp_path / "outside.svg")
    assert smallest_image(folder).source.startswith("data:image/png")
    shown = Page(write_report(tmp_path).path)
    assert not any("figure.svg" in a["href"] for a in shown.all("a"))
    assert len(shown.all("img")) == 1


@pytest.mark.parametrize(
    "content",
    [
        svg().replace("<svg", "<!DOCTYPE s [<!ENTITY a 'b'>]><svg").encode(),
        svg().replace("72pt", "9e9pt").encode(),
        svg().replace("72pt", "999999pt").encode(),
        b"<html><script>alert(1)</script></html>",
        b"",
    ],
)
def test_what_is_no_figure_of_ours_is_not_shown(content, tmp_path):
    folder = run_folder(tmp_path)
    (folder / "figure.svg").write_bytes(content)
    (folder / "figure.png").write_bytes(b"GIF89a")
    assert smallest_image(folder) is None
