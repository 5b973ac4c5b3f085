from __future__ import annotations

import base64
import gzip
import json
import re

import numpy as np
import pytest

import featavg as fa
from featavg.apps.play import lesson
from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.presets import preset_of_link
from featavg.apps.play.recording import PLANES, record, steps_to_record
from featavg.apps.play.settings import NETWORKS

TINY = "clusters=4&dim=200&samples=40&width=2&learning_rate=0.005&steps=4"


@pytest.fixture(scope="module")
def recorded():
    """One recording, and how often it reported progress."""
    settings = preset_of_link(TINY).settings
    reports = []
    return settings, record([settings], lambda: reports.append(1))[0], len(reports)


def test_what_is_recorded_is_what_the_server_would_send(recorded):
    settings, recording, reports = recorded
    assert reports == steps_to_record([settings])
    assert [frame["position"] for frame in recording["frames"]] == settings.schedule.tolist()
    assert len(recording["planes"]) == PLANES
    for name in NETWORKS:
        run = NetworkRun(settings, name)
        run.advance(settings.end, seconds=60)
        last = recording["frames"][-1]
        assert last[name] == run.snapshot()
        radii = fa.exact_radii(
            run.learner.trained(run._now).net, run.test.x, run.test.y, certificates=False
        )
        np.testing.assert_allclose(last["radii"][name]["upper"], np.sort(radii.upper), rtol=1e-4)
        first = recording["frames"][0]["radii"][name]
        assert first["points"] < last["radii"][name]["points"] == 100


def test_the_page_holds_all_of_it_and_asks_nobody(recorded, tmp_path):
    _, recording, _ = recorded
    page = lesson.lesson_page([preset_of_link(TINY)], [recording])
    packed = re.search(r'id="lesson">([^<]*)<', page).group(1)
    content = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert content["recordings"] == json.loads(json.dumps([recording]))
    assert [preset["query"] for preset in content["about"]["presets"]] == [TINY]
    assert "default-src 'none'" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert len(page) < 300_000


@pytest.mark.slow
def test_worlds_beyond_the_paper_are_recorded_too():
    worlds = [preset_of_link(f"{TINY}&{more}") for more in ("grouping=1,1|2", "objective=radius")]
    groups, pieces = record([world.settings for world in worlds])
    assert [row["size"] for row in groups["described"]["law"]] == [1, 1, 2]
    for frame in groups["frames"]:
        assert len(frame["radii"]["fine"]["groups"]) == 3
    indices = [frame["fine"]["index"] for frame in pieces["frames"]]
    assert indices[0] > 0.99 > 0.98 > indices[-1]
    assert pieces["planes"][0]["fine"]["radius"] > 0
    page = lesson.lesson_page(worlds, [groups, pieces])
    assert "const worlds_js" in page


def test_a_lesson_that_is_too_large_is_refused_and_the_old_one_stays(
    recorded, tmp_path, monkeypatch
):
    path = tmp_path / "lesson.html"
    path.write_text("the old one")
    monkeypatch.setattr(lesson, "record", lambda wanted, report: [recorded[1]])
    monkeypatch.setattr(lesson, "LARGEST", 1000)
    with pytest.raises(fa.InputError, match="a lesson has at most 0 MB"):
        lesson.save_lesson(path, [preset_of_link(TINY)], progress=False)
    assert path.read_text() == "the old one"
    monkeypatch.setattr(lesson, "LARGEST", 5_000_000)
    size = lesson.save_lesson(path, [preset_of_link(TINY)], progress=False)
    assert path.stat().st_size == size
    assert [file.name for file in tmp_path.iterdir()] == ["lesson.html"]


def test_a_lesson_that_cannot_be_written_is_refused_before_it_is_recorded(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(lesson, "record", lambda wanted, report: pytest.fail("it is recorded"))
    with pytest.raises(fa.InputError, match=r"in a folder that can be written to; got '.*x.html'"):
        lesson.save_lesson(tmp_path / "file" / "x.html", [preset_of_link(TINY)], progress=False)


def test_modules_are_bundled_once_each_after_what_they_need():
    modules = {
        "app": 'import { f } from "./f.js";\nimport { $ } from "./state.js";\nf($);',
        "f": 'import { $ } from "./state.js";\nexport async function f(x) { return $(x); }',
        "state": "export const $ = (x) => x;\nexport class Kept {}",
    }
    script = lesson.bundle(modules, "app")
    order = [script.index(f"const {name}_js") for name in ("state", "f", "app")]
    assert order == sorted(order)
    assert script.count("const state_js") == 1
    assert "return {$, Kept};" in script
    assert "import" not in script
    with pytest.raises(ValueError, match="cannot be bundled"):
        lesson.bundle({"app": "export default 1;"}, "app")
