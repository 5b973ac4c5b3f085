"""What some tests and doctests need beyond the extra `test`, so that the others run without it."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
# for each marker the module that its tests need, and the files and folders that need it as a whole
NEEDS = {
    "vision": (
        "torch",
        [
            "src/featavg/networks/torch_net.py",
            "src/featavg/robustness/torch_models.py",
            "src/featavg/robustness/torch_operations.py",
            "src/featavg/vision",
            "tests/auditing/test_model.py",
            "tests/benchmarks",
            "tests/experiments/test_figure2_embeddings.py",
            "tests/experiments/test_image_runs.py",
            "tests/networks/test_torch_net.py",
            "tests/robustness/test_torch_models.py",
            "tests/vision",
        ],
    ),
    "cluster": ("distributed", ["tests/lab/sweeps/test_cluster.py"]),
    "browser": (
        "playwright",
        [
            "tests/apps/audit/test_browser.py",
            "tests/apps/play/test_browser.py",
            "tests/apps/play/test_browser_lesson.py",
            "tests/apps/play/test_browser_teaching.py",
            "tests/apps/play/test_browser_worlds.py",
            "tests/apps/report/test_browser.py",
        ],
    ),
    "slow": ("sphinx", ["tests/docs"]),
}


@cache
def missing() -> list[str]:
    """Return the modules that are not installed."""
    return [module for module, _ in NEEDS.values() if find_spec(module) is None]


def marker_of(path: Path) -> str | None:
    """Return the marker of everything in a file or folder."""
    for marker, (_, places) in NEEDS.items():
        if any(path.is_relative_to(ROOT / place) for place in places):
            return marker
    return None


def pytest_report_header() -> str:
    """Say which modules are missing."""
    return f"not installed, and left out: {', '.join(missing()) or 'nothing'}"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that could not be imported."""
    marker = marker_of(collection_path)
    return True if marker and NEEDS[marker][0] in missing() else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests by their place, and doctests that import PyTorch."""
    marker = marker_of(item.path)
    examples = item.dtest.examples if isinstance(item, pytest.DoctestItem) else []
    if marker is None and any("import torch" in example.source for example in examples):
        marker = "vision"
    if marker is not None:
        item.add_marker(marker)
