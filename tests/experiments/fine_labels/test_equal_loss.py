"""Gains by fine labels at equal training loss."""

from __future__ import annotations

import numpy as np
import pytest

from featavg import InputError
from featavg.experiments.fine_labels.losses import (
    EXPERIMENT,
    Parameters,
    conclude,
    expects,
    gains_at_equal_loss,
)


def falling(losses, offset=0.0):
    """Two images of which the first survives less and less as the loss falls."""
    share = 0.5 + 0.2 * np.log10(losses) + offset
    return np.stack([share, np.ones(len(losses))], axis=1)


def gains(base, other, offset=0.0):
    """Return the gains over another network, if only the loss and an offset count."""
    base, other = np.array(base), np.array(other)
    return gains_at_equal_loss((base, falling(base)), (other, falling(other, offset)))


def test_what_depends_on_the_loss_alone_is_no_gain():
    base, other = [0.3, 0.1, 0.03], [0.1, 0.03, 0.01]
    at_the_end = [falling(np.array(losses))[-1, 0] for losses in (base, other)]
    assert at_the_end[1] < at_the_end[0] - 0.05  # a loss at equal numbers of epochs
    assert gains(base, other) == pytest.approx([0, 0], abs=1e-12)
    assert gains(base, other, 0.1) == pytest.approx([0.1, 0])


def test_losses_that_rise_in_between_are_sorted():
    assert gains([0.3, 0.01], [0.3, 0.03, 0.1, 0.01]) == pytest.approx([0, 0], abs=1e-12)


def test_without_a_loss_in_common_nothing_is_compared():
    assert np.isnan(gains([0.3, 0.2], [0.1, 0.03])).all()
    parameters = Parameters(splits="parity", optimizers="adam")
    norms = {f"adam_parity_{name}_norms": np.ones((2, 5, 3)) for name in ("score", "fine100")}
    text = conclude(parameters, norms | {"adam_parity_fine100_gains": np.full((2, 3), np.nan)})
    assert "all fine labels: no loss in common in some training, after 16 epochs +0.0" in text


def test_parameters_and_what_was_expected():
    assert Parameters().milestones == [1, 2, 4, 8, 16]
    assert Parameters(optimizers="sgd,adam").pairs[0] == ("adam", "first-five")
    with pytest.raises(InputError, match="epochs must be a power of 2; got 6"):
        Parameters(epochs=6)
    with pytest.raises(InputError, match="optimizers must be one of 'adam', 'sgd', 'sgd-small'"):
        Parameters(optimizers="adamw")
    assert [row.key for row in Parameters(supplies="kmeans,fine1").rows] == ["fine1", "kmeans"]
    with pytest.raises(InputError, match="supplies must be one of 'fine0', 'fine1', 'fine100'"):
        Parameters(supplies="fine3")
    rules = {row.quantity: row.rule for row in expects(EXPERIMENT.parameters)}
    assert rules["adam_parity_fine100_gain"] == "≥ 0.03"
    assert rules["sgd_first_five_fine100_gain"] == "≥ -0.06"
    assert {row.rule for row in expects(EXPERIMENT.quick)} == {"reported"}
