"""Manifests: what is damaged is named, and nothing outside the folder is looked at."""

from __future__ import annotations

import re

import pytest

from featavg.manifest import MANIFEST, damaged_files, remove_manifest, write_manifest
from featavg.seals import read_sealed_json, to_sealed_json

OWN = re.compile(r"[ab]\.json|link|(seeds|parts)/[0-9p]\.[a-z]+")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    (folder / "seeds").mkdir(parents=True)
    (folder / "parts").mkdir()
    for name in ("a.json", "seeds/0.npz", "parts/p.parquet", "a.json.corrupt", ".a.json.x", "lock"):
        (folder / name).write_text(f"content of {name}")
    (folder / "link").symlink_to(tmp_path / "outside")
    write_manifest(folder, OWN, ["seeds", "missing"])
    return folder


def test_it_has_all_files_of_the_folder_and_the_subfolders_that_are_named(folder):
    files = read_sealed_json(folder / MANIFEST, most=10_000)["files"]
    assert list(files) == ["a.json", "seeds/0.npz"]
    assert files["a.json"]["bytes"] == len("content of a.json")
    assert damaged_files(folder) == {}


def test_files_of_the_user_are_not_in_it(folder):
    for name in ("my notes.txt", "notes.md", "seeds/0 (copy).npz"):
        (folder / name).write_text("before")
    write_manifest(folder, OWN, ["seeds"])
    for name in ("my notes.txt", "notes.md", "seeds/0 (copy).npz"):
        (folder / name).write_text("afterwards")
    assert damaged_files(folder) == {}


def test_what_differs_is_named(folder):
    (folder / "a.json").write_text("content of b.json")
    (folder / "seeds" / "0.npz").write_text("longer than it was before")
    assert damaged_files(folder) == {
        "a.json": "does not have its checksum",
        "seeds/0.npz": "does not have the size that manifest.json states",
    }
    (folder / "a.json").unlink()
    (folder / "a.json").symlink_to(folder / "seeds" / "0.npz")
    (folder / "seeds" / "0.npz").unlink()
    damaged = damaged_files(folder)
    assert damaged["seeds/0.npz"] == "is missing"
    assert "a.json" in damaged


def test_a_folder_without_one(folder):
    remove_manifest(folder)
    assert damaged_files(folder) is None
    remove_manifest(folder)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "link", "a/b/c", "seeds/../a.json"])
def test_names_that_lead_out_of_the_folder_are_not_followed(name, folder, tmp_path):
    (tmp_path / "outside").write_text("secret")
    about = {"format": "featavg manifest 1", "files": {name: {"bytes": 6, "sha256": "0"}}}
    (folder / MANIFEST).write_bytes(to_sealed_json(about))
    (reason,) = damaged_files(folder).values()
    assert reason in (
        "is not a file of this folder",
        "does not have the size that manifest.json states",
    )


@pytest.mark.parametrize("about", [{"format": "another"}, {"format": "featavg manifest 1"}])
def test_one_of_another_format_is_damaged(about, folder):
    (folder / MANIFEST).write_bytes(to_sealed_json(about))
    assert damaged_files(folder).keys() == {MANIFEST}


def test_a_subfolder_that_became_a_link_is_not_followed(folder, tmp_path):
    (folder / "seeds").rename(tmp_path / "seeds")
    (folder / "seeds").symlink_to(tmp_path / "seeds")
    assert damaged_files(folder) == {"seeds/0.npz": "is not a file of this folder"}
