from __future__ import annotations

import pytest

from featavg.apps.play.presets import presets
from featavg.experiments import EXPERIMENTS, theorem


def test_presets_are_the_paper_its_theorems_the_poster_and_every_ablation():
    found = presets()
    assert len({preset.name for preset in found}) == len(found)
    groups = {preset.group for preset in found}
    assert {"Figure 5", "Figure 6", "Figure 7", "Figure 8", "Figure 9"} < groups
    paper = EXPERIMENTS["figure2-synthetic"].parameters
    for name in ("clusters", "dim", "samples", "width", "learning_rate", "weight_scale", "steps"):
        assert getattr(found[0].settings, name) == getattr(paper, name), name
    regime = theorem.Parameters()
    assert found[1].settings.samples == regime.samples == 3**7
    assert found[1].settings.steps * found[1].settings.learning_rate == pytest.approx(100, rel=1e-5)
    assert found[2].settings.bias_scale == pytest.approx(1 / regime.dim, rel=1e-5)
