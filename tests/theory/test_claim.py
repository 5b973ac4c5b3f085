from __future__ import annotations

import itertools

import numpy as np
import pytest

from featavg.theory.claim import NOT_STATED, Finding, at_least, at_most


def test_slack_is_at_least_one_exactly_where_the_inequality_holds():
    values = [-2.0, -1.0, 0.0, 1.0, 2.0]
    for q, b in itertools.product(values, values):
        assert (at_most(q, b).slack >= 1) == (q <= b), (q, b)
        assert (at_least(q, b).slack >= 1) == (q >= b), (q, b)
    assert Finding(np.nan, np.nan, np.nan).verdict == NOT_STATED
    with pytest.raises(ValueError, match="no NaN"):
        at_most(np.nan, 1.0)
