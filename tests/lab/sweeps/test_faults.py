"""Sweeps that are killed, and stores that are damaged, full or of other source code."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import subprocess
import time
import tracemalloc
from dataclasses import replace

import pytest

from featavg import DamagedFileWarning, InputError
from featavg.apps.cli.main import main
from featavg.lab.experiment import Experiment
from featavg.lab.sweeps import Store, sweep
from support import sweep_faults as faults
from support.sweep_faults import small, stored_rows, tiny

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a sweep that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    sweep(small(), folder, workers=2)
    return folder


@pytest.fixture(scope="module")
def undisturbed(finished):
    """The bytes of its table."""
    return (finished / "results.parquet").read_bytes()


@pytest.mark.long  # and in 'make test-faults'; test_killed_in_writes.py has a shorter one
@pytest.mark.parametrize("number", range(faults.ROUNDS))
def test_killed_at_random_times_it_ends_with_the_same_bytes(number, tmp_path, undisturbed):
    design = faults.toml(tmp_path / "design.toml")
    out = tmp_path / "out"
    rng = random.Random(number)  # noqa: S311
    faults.until_finished(design, out, rng, "--workers", "2")
    assert (out / "results.parquet").read_bytes() == undisturbed
    ids = [row["id"] for row in stored_rows(out)]
    assert len(ids) == len(set(ids)) == faults.RUNS


def test_what_was_reported_finished_is_there_after_a_kill(tmp_path):
    """Killed at the first word of progress: all that was counted by then is on the disk."""
    design, seen = small(), []

    def stop(rows):
        seen.append(sum(row["status"] == "done" for row in rows))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(design, tmp_path, workers=1, watch=stop)
    store = Store(tmp_path, design.experiment.source)
    store.refresh()
    assert store.tally(design).done == seen[0] > 0


def test_two_processes_at_once(tmp_path, undisturbed):
    design = faults.toml(tmp_path / "design.toml")
    out = tmp_path / "out"
    both = [faults.start(design, out, "--workers", "1") for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert (out / "results.parquet").read_bytes() == undisturbed


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "text"])
def test_a_damaged_part_is_set_aside_and_done_again(
    damage, tmp_path, finished, undisturbed, capsys
):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    part = sorted((tmp_path / "parts").iterdir())[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    changed = {
        "flipped": bytes(content),
        "cut": bytes(content[:-20]),
        "empty": b"",
        "text": b"not Parquet",
    }
    part.write_bytes(changed[damage])
    assert main(["sweep", "status", str(tmp_path)]) == 1
    assert f"{part.name} is damaged" in capsys.readouterr().err
    sweep(small(), tmp_path, workers=1)
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed


def hostile(**columns):
    """Return a part under the right name, with whatever is asked for in it."""
    import pyarrow as pa
    from pyarrow import parquet

    one = {"id": "a", "seed": 0, "status": "done", "error": "", "source": "s", "seconds": 1.0}
    rows = max((len(c) for c in columns.values()), default=1)
    usual = {name: pa.repeat(pa.scalar(value), rows) for name, value in one.items()}
    buffer = io.BytesIO()
    parquet.write_table(pa.table(usual | columns), buffer)
    return buffer.getvalue()


def many_rows():
    import pyarrow as pa

    return hostile(index=pa.repeat(1.0, 5_000_000))


def long_texts():
    import pyarrow as pa

    return hostile(
        error=pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0), 20_000), ["x" * 5000])
    )


def other_types():
    import pyarrow as pa

    return hostile(seconds=pa.array(["long"]))


def no_columns():
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pa.table({"id": ["a"]}), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (many_rows, "must have at most 1,000,000 values; got 35,000,000"),
        (long_texts, "its texts must have at most 67,108,864 characters; got 100,"),
        (other_types, "other columns than a sweep writes"),
        (no_columns, "other columns than a sweep writes"),
    ],
)
def test_a_small_part_that_would_take_much_memory_or_fails_is_refused(content, reason, tmp_path):
    part = content()
    assert len(part) < 200_000
    (tmp_path / "parts").mkdir()
    name = f"{hashlib.sha256(part).hexdigest()[:32]}.parquet"
    (tmp_path / "parts" / name).write_bytes(part)
    store = Store(tmp_path, "s")
    tracemalloc.start()
    with pytest.warns(DamagedFileWarning, match=f"{name} is damaged .*{reason}"):
        store.refresh()
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()
    assert store.rows == {}


def test_results_of_other_source_code_are_not_mixed_in(tmp_path, monkeypatch):
    design = tiny()
    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "source", "older")
        assert set(sweep(design, tmp_path, workers=1).column("source").to_pylist()) == {"older"}
    store = Store(tmp_path, design.experiment.source)
    store.refresh()
    tally = store.tally(design)
    assert (tally.done, tally.missing, tally.outdated) == (0, 4, 4)
    sources = set(sweep(design, tmp_path, workers=1).column("source").to_pylist())
    assert sources == {design.experiment.source}


def test_another_design_in_the_folder_is_refused(tmp_path):
    sweep(tiny(), tmp_path, workers=1)
    with pytest.raises(InputError, match="holds another"):
        sweep(tiny(seeds=3), tmp_path, workers=1)


def test_a_clock_that_is_set_back_changes_nothing(tmp_path, monkeypatch, undisturbed):
    now = [4e9]

    def backwards():
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr(time, "time", backwards)
    with pytest.raises(KeyboardInterrupt):
        sweep(small(), tmp_path, workers=1, watch=_interrupt)
    for part in (tmp_path / "parts").iterdir():
        os.utime(part, (5e9, 5e9))  # from the future
    sweep(small(), tmp_path, workers=1)
    assert (tmp_path / "results.parquet").read_bytes() == undisturbed


def _interrupt(_):
    raise KeyboardInterrupt


@pytest.fixture
def disk(tmp_path):
    """A file system that is small, and can be made read-only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    search = "/usr/sbin:/usr/bin:/sbin:/bin"

    def call(*command):
        return subprocess.run(command, env={"PATH": search}, capture_output=True, check=False)

    if os.geteuid() != 0 or shutil.which("mount", path=search) is None:
        pytest.skip("only root can mount a small file system")
    done = call("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder))
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.decode()}")
    yield folder, call
    call("umount", str(folder))


def test_a_full_disk_loses_nothing_and_the_sweep_goes_on_once_there_is_room(disk, undisturbed):
    folder, call = disk
    with pytest.raises(OSError, match="No space left"):
        sweep(small(), folder / "sweep", workers=1)
    store = Store(folder / "sweep", small().experiment.source)
    store.refresh()
    kept = store.tally(small())
    assert kept.done > 0
    assert not kept.corrupt
    call("mount", "-o", "remount,size=8m", str(folder))
    sweep(small(), folder / "sweep", workers=1)
    assert (folder / "sweep" / "results.parquet").read_bytes() == undisturbed


def test_a_store_that_can_only_be_read(disk, capsys):
    folder, call = disk
    sweep(tiny(), folder / "sweep", workers=1)
    call("mount", "-o", "remount,ro", str(folder))
    assert main(["sweep", "status", str(folder / "sweep")]) == 0
    assert "4 runs done" in capsys.readouterr().out
    with pytest.raises(InputError, match="out must be a folder that can be written to"):
        sweep(tiny(), folder / "other", workers=1)


def test_a_run_that_kills_its_worker_is_the_only_one_to_fail(tmp_path):
    design = tiny()
    design = replace(design, experiment=replace(design.experiment, measure=faults.kills_its_worker))
    rows = sweep(design, tmp_path, workers=2).to_pylist()
    assert [row["status"] for row in rows] == [
        "failed" if row["learning_rate"] > 5e-3 else "done" for row in rows
    ]
    assert {row["error"] for row in rows} == {
        "",
        "the worker died, most likely because it ran out of memory",
    }
