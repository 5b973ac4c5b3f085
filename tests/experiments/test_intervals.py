"""Intervals over trainings and images: formulas, hand-worked cases, and coverage by simulation."""

import numpy as np
import pytest
from scipy.stats import t as student

from featavg.experiments.intervals import Interval, mean_interval, ratio_interval


def rng(seed=0):
    return np.random.default_rng(seed)


def test_equal_trainings_have_the_interval_over_images():
    values = np.repeat(rng().random((1, 4000)) < 0.3, 3, axis=0).astype(float)
    found = mean_interval(values)
    error = values[0].std() / np.sqrt(4000)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.01)
    assert mean_interval(values[:1]).low == pytest.approx(found.low, abs=1e-4)


def test_equal_images_have_students_interval_over_trainings():
    means = np.array([0.2, 0.4, 0.6, 0.8])
    half = student.ppf(0.975, 3) * means.std(ddof=1) / 2
    for images in (1, 50):
        found = mean_interval(np.repeat(means[:, None], images, axis=1))
        assert (found.low, found.value, found.high) == pytest.approx((0.5 - half, 0.5, 0.5 + half))


def test_by_hand():
    """Row means 2 and 1, column means -1 and 4, so MS_T = 1, MS_I = 25, and MS_E = 1."""
    found = mean_interval(np.array([[0.0, 4.0], [-2.0, 4.0]]))
    half = 12.7062 * np.sqrt((1 + 24) / 4)  # of one degree of freedom, for both
    assert (found.value, found.high - found.value) == pytest.approx((1.5, half), rel=1e-5)


def test_shares_stay_possible():
    wide = mean_interval(np.array([[1.0, 1, 1, 0], [1, 0, 1, 1]]))
    assert wide.high > 1
    assert wide.within(0, 1).percent(".0f") == f"75 [{100 * wide.low:.0f}, 100]"


def test_percentages():
    interval = Interval(0.5, -0.0001, 1.234)
    assert interval.percent() == "50.0 [0.0, 123.4]"
    assert interval.percent("+.0f") == "+50 [+0, +123]"
    assert Interval(1.0, -np.inf, np.inf).percent(".0f") == "100 [-inf, inf]"


def test_one_value_says_nothing_of_its_error():
    found = mean_interval(np.array([[0.3]]))
    assert (found.low, found.value, found.high) == (-np.inf, 0.3, np.inf)
    assert not found.excludes_zero


def test_trainings_whose_means_agree_by_chance_do_not_make_it_certain():
    opposite = mean_interval(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert not opposite.excludes_zero
    generator = rng(3)
    for _ in range(200):  # no effect of trainings or images: widths are those of one sample
        values = generator.integers(-1, 2, size=(2, 50)).astype(float)
        found = mean_interval(values)
        assert found.high - found.low > 1.9 * values.std() / np.sqrt(100) * 1.9


def drawn(trainings, scatter, generator, images=100):
    """Differences of images that survive, as the experiments have them: -1, 0 or 1."""
    of_images = generator.normal(size=(1, images))
    of_trainings = generator.normal(scale=scatter, size=(trainings, 1))
    both = 0.2 + of_images + of_trainings + generator.normal(size=(trainings, images))
    return np.sign(both) * (abs(both) > 0.7)


@pytest.mark.parametrize("trainings", [2, 3, 5])
@pytest.mark.parametrize("scatter", [0.0, 0.3, 0.6])
def test_intervals_cover_the_truth(trainings, scatter):
    truth = np.mean([drawn(500, scatter, rng(i), 500).mean() for i in range(40)])
    generator = rng(1000)
    found = [mean_interval(drawn(trainings, scatter, generator)) for _ in range(600)]
    covered = np.mean([interval.low <= truth <= interval.high for interval in found])
    assert covered > 0.93
    # no wider than the standard deviation of the mean and Student's t of the trainings ask for
    spread = np.std([interval.value for interval in found])
    widths = [interval.high - interval.low for interval in found]
    assert np.median(widths) < 2 * student.ppf(0.975, trainings - 1) * spread


def test_ratio_by_fieller():
    trainings = np.repeat([[0.2], [0.4], [0.6], [0.8]], 50, axis=1)
    assert ratio_interval(trainings, 2 * trainings).percent(".0f") == "50 [50, 50]"
    # one row of images: the classical formula for the ratio of two paired means
    below = rng().normal(1.0, 0.5, size=(1, 60))
    above = 0.5 * below + rng(1).normal(0.2, 0.3, size=(1, 60))
    found = ratio_interval(above, below)
    (var_a, cov), (_, var_b) = np.cov(above[0], below[0]) / 60
    q = student.ppf(0.975, 59) ** 2
    a, b = above.mean(), below.mean()
    ends = np.roots([b**2 - q * var_b, -2 * (a * b - q * cov), a**2 - q * var_a])
    assert (found.low, found.high) == pytest.approx((ends.min(), ends.max()))
    assert found.value == pytest.approx(a / b)


def test_a_ratio_spans_what_cannot_be_ruled_out():
    """By a fine grid: where the mean of above - rho·below is within its interval of 0."""
    generator, tried = rng(7), 0
    while tried < 40:
        below = generator.normal(0.5, 0.6, size=(3, 30)) + generator.normal(size=(1, 30))
        above = 0.7 * below + generator.normal(0, 0.3, size=(3, 30))
        found = ratio_interval(above, below)
        if np.isinf(found.low):
            continue
        tried += 1
        grid = np.linspace(found.low - 1, found.high + 1, 400)
        possible = [not mean_interval(above - rho * below).excludes_zero for rho in grid]
        inside = (grid >= found.low) & (grid <= found.high)
        assert inside[possible].all()
        for end in (found.low, found.high):
            at = mean_interval(above - end * below)
            assert min(abs(at.low), abs(at.high)) < 1e-7


@pytest.mark.parametrize("below", [np.zeros((3, 20)), rng().normal(0, 1, size=(3, 20))])
def test_a_ratio_to_what_cannot_be_told_from_0_has_no_ends(below):
    found = ratio_interval(np.ones((3, 20)), below)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert np.isnan(found.value) == (below.mean() == 0)


def test_ratios_cover_the_truth():
    generator, covered = rng(5), 0
    for _ in range(300):
        of_trainings = generator.normal(0.3, 0.08, size=(5, 1))
        below = of_trainings + generator.normal(0, 0.5, size=(5, 100))
        above = 0.8 * of_trainings + generator.normal(0, 0.05, size=(5, 1))
        found = ratio_interval(above + generator.normal(0, 0.5, size=(5, 100)), below)
        covered += found.low <= 0.8 <= found.high
    assert covered > 0.93 * 300
