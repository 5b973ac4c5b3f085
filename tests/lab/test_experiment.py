from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments import (
    Expectation,
    figure3,
)
from support.probe import Probe


def test_equal_parameters_are_one_run():
    keys = {
        figure3.EXPERIMENT.key(p)
        for p in (
            figure3.Parameters(),
            figure3.Parameters(signal=1, clusters=np.int64(10)),
            figure3.Parameters(learning_rate=np.float64(0.001)),
        )
    }
    assert len(keys) == 1


def test_an_expectation_holds_only_if_every_seed_is_in_range():
    expectation = Expectation("a number", "x", low=0, high=1)
    assert expectation.judge({"x": np.array([0.0, 0.5, 1.0])}).holds
    assert not expectation.judge({"x": np.array([0.5, 1.01])}).holds
    assert not expectation.judge({"x": np.array([0.5, np.nan])}).holds
    outcome = expectation.judge({"x": np.array([0.2, 0.4])})
    assert outcome.mean == pytest.approx(0.3)
    assert outcome.std == pytest.approx(np.sqrt(0.02))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../../escaped", "a/b", "a\\b", "a b", "a\n", None]
)
def test_an_id_that_is_no_name_of_a_folder_is_refused(name):
    with pytest.raises(InputError, match="the id of an experiment must be of letters, digits, "):
        replace(Probe().experiment, id=name)
