"""The two classifiers, for tests of both."""

from __future__ import annotations

import pytest

from featavg.estimators import AveragingClassifier, DecoupledClassifier

BOTH = (AveragingClassifier, DecoupledClassifier)
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
