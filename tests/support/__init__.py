"""What the tests share: second implementations, tiny data sets, programs to be killed."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
FILES = TESTS / "support" / "files"  # slices of the published data sets
ARTEFACTS = ROOT / "artefacts"  # screenshots, to be looked at
