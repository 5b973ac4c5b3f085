from __future__ import annotations

import pytest

from featavg.apps.play.network_run import NetworkRun
from featavg.apps.play.presets import presets
from featavg.experiments import EXPERIMENTS, theorem


def test_presets_are_the_paper_its_theorems_the_poster_and_every_ablation():
    found = presets()
    assert len({preset.name for preset in found}) == len(found)
    assert (
        len({preset.settings.to_query() for preset in found if preset.group == "Beyond the paper"})
        == 6
    )
    groups = {preset.group for preset in found}
    assert {"Figure 5", "Figure 6", "Figure 7", "Figure 8", "Figure 9"} < groups
    paper = EXPERIMENTS["figure2-synthetic"].parameters
    for name in ("clusters", "dim", "samples", "width", "learning_rate", "weight_scale", "steps"):
        assert getattr(found[0].settings, name) == getattr(paper, name), name
    regime = theorem.Parameters()
    assert found[1].settings.samples == regime.samples == 3**7
    assert found[1].settings.steps * found[1].settings.learning_rate == pytest.approx(100, rel=1e-5)
    assert found[2].settings.bias_scale == pytest.approx(1 / regime.dim, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "coarse", "fine"),
    [
        # the range of the averaging index and of the median radius, in units of what theory says
        ("Adam", (0.85, 1.0, 0.85, 0.97), (0.0, 0.05, 0.75, 0.9)),
        ("The square loss", (0.95, 1.0, 0.95, 1.05), (0.0, 0.05, 0.95, 1.0)),
        ("A few fine labels", (0.95, 1.0, 0.95, 1.05), (0.0, 0.2, 0.85, 1.0)),
        ("Adversarial training", (0.9, 1.0, 0.9, 1.05), (0.0, 0.2, 0.75, 1.0)),
        ("Training on the radius", (0.95, 1.0, 0.95, 1.05), (0.0, 0.1, 0.93, 1.0)),
    ],
)
def test_worlds_show_what_their_notes_say(name, coarse, fine):
    settings = next(preset.settings for preset in presets() if preset.name == name)
    for network, theory, expected in zip(
        settings.networks, settings.predicted, (coarse, fine), strict=True
    ):
        run = NetworkRun(settings, network)
        run.advance(settings.end, seconds=600)
        while not (radii := run.measure(seconds=1.0))["complete"]:
            pass
        assert expected[0] <= run.snapshot()["index"] <= expected[1]
        assert expected[2] <= radii["median"] / theory <= expected[3]
