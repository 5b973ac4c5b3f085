"""Every pair of seam and method: right for another object than the default, or refused.

A file for each of the five seams (law, activation, loss, rule, norm), one for labels and one for
readouts; each has a class with a test for each method.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import featavg as fa
from support.seam_matrix import USUAL, binary

SEAMS = {"law", "activation", "loss", "rule", "norm", "labels", "readout"}


def test_every_seam_has_its_file():
    found = Path(__file__).parent.glob("test_matrix_*.py")
    assert {path.stem.removeprefix("test_matrix_") for path in found} == SEAMS


def test_a_result_names_its_objects():
    run = fa.descend(binary(USUAL), USUAL, learning_rate=0.1, steps=1, rule=fa.SAM(0.1))
    named = SimpleNamespace(rule=run.rule, loss=run.loss_function, law=run.sample.law)
    assert named == SimpleNamespace(rule=fa.SAM(0.1), loss=fa.Logistic(), law=USUAL.law)
