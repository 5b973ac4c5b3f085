"""The granularity law on real hierarchies: where it holds with measured means, and what breaks it.

Points are embeddings without their mean, in clusters: the 26 categories of WordNet's nouns, or the
ten classes of CIFAR-10. Two sides are made of the clusters, one neuron is trained for each group of
clusters that share a label, and its certified radius is compared with the law of
`featavg.theory.measured_granularity`, which knows the norms and the angles of the measured means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from featavg.arrays import FloatArray
from featavg.drawing.views import Curves, DotPanel, Dots, DotSeries, Line, Mark, Panel, View
from featavg.experiments import embedded
from featavg.experiments.beyond.real_groups import TOLERANCE, Training, measure_groups
from featavg.experiments.beyond.real_points import ordered_groups
from featavg.experiments.beyond.real_setting import (
    CHANGES,
    NATURAL,
    WORDNET,
    Case,
    ImageSetting,
    RealData,
    RealSetting,
    WordNetSetting,
)
from featavg.lab.expectations import Expectation, at_least, at_most, reported
from featavg.lab.experiment import Experiment
from featavg.lab.tables import Measurements, Results, Table, stacked
from featavg.progress import counted, wanted

_COLUMNS = (
    *("radius", "upper", "averages", "law", "orthogonal_law", "accuracy", "averages_accuracy"),
    *("label_accuracy", "loss", "exact", "groups_within", "searched_exact", "searched_gain"),
)


def measure(parameters: RealSetting, seed: int) -> Measurements:
    """Train on every number of label groups of every case."""
    data = parameters.draw(np.random.default_rng([seed, 0]))
    work = [(case, level) for case in parameters.cases for level in parameters.levels(case)]
    if data.finer is not None:
        work += [(case, 0) for case in parameters.cases if case not in CHANGES]
    rows: dict[str, list[dict[str, float]]] = {case.name: [] for case in parameters.cases}
    for i in counted(len(work), "label groups", enabled=wanted()):
        case, level = work[i]
        rng = np.random.default_rng([seed, 1, i])
        rows[case.name].append(_measured(parameters, data, case, level, rng))
    found: dict[str, object] = {}
    for case in parameters.cases:
        columns = stacked(rows[case.name])
        found |= {f"{case.name}_{name}": columns[name] for name in ("groups", *_COLUMNS)}
    return found | _summary(parameters, found)


def _measured(
    parameters: RealSetting, data: RealData, case: Case, level: int, rng: np.random.Generator
) -> dict[str, float]:
    """Train on one number of label groups; 0 stands for a label for each finer cluster."""
    points, positive, groups = data.points, parameters.positive(case), level
    if level == 0 and data.finer is not None:
        points, positive = data.finer, np.flatnonzero(np.isin(data.cluster_of, positive)).tolist()
        groups = points.clusters
    number, grouping = ordered_groups(points.clusters, positive, groups, rng)
    changed = case.change(points, rng).renamed(number)
    train, test = changed.samples(sum(grouping.positive), grouping)
    training = Training(case.time * parameters.time, parameters.searched, parameters.seconds)
    return {"groups": len(grouping)} | measure_groups(train, test, training, rng)


def _summary(parameters: RealSetting, found: Measurements) -> dict[str, float]:
    """Return numbers that expectations are about."""
    ratio = {case.name: _ratio(found, case.name) for case in parameters.cases}
    kept = {case.name: _ratio(found, case.name, "averages", "law") for case in parameters.cases}
    last = len(parameters.levels(NATURAL)) - 1
    random = [case.name for case in parameters.cases if case.sides]
    numbers = {
        "coarse_ratio": ratio["natural"][0],
        "fine_ratio": ratio["natural"][last],
        "coarse_averages_ratio": kept["natural"][0],
        "fine_averages_ratio": kept["natural"][last],
        "assumed_low": ratio["quiet_both"].min(),
        "assumed_high": ratio["quiet_both"].max(),
        "quiet_gain": kept["quiet"][-1] - kept["natural"][last],
        "fine_accuracy": np.asarray(found["natural_accuracy"])[last],
        "natural_gain": _gain(found, "natural", last),
        "natural_proved_gain": _gain(found, "natural", last, "upper"),
        "exact_share": np.mean([np.mean(found[f"{c.name}_exact"]) for c in parameters.cases]),
        "search_gain": np.nanmax(
            [np.nanmax(found[f"{c.name}_searched_gain"]) for c in parameters.cases]
        ),
    }
    if random:
        for number, below in (("random_gain", "radius"), ("random_proved_gain", "upper")):
            numbers[number] = min(_gain(found, name, last, below) for name in random)
    return {name: float(value) for name, value in numbers.items()}


def _ratio(found: Measurements, name: str, above: str = "radius", below: str = "law") -> FloatArray:
    """Return the ratio of two quantities of a case; NaN where the lower one is 0."""
    top, bottom = (np.asarray(found[f"{name}_{what}"], dtype=float) for what in (above, below))
    return np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)


def _gain(found: Measurements, name: str, last: int, below: str = "radius") -> float:
    """Return the certified radius with a label for each cluster over that with two labels.

    Two lower bounds prove nothing about the ratio of the radii, and those of coarse labels are
    looser. Over the upper bound (`below`) with two labels, the ratio is one that is proved.
    """
    fine, coarse = (
        np.asarray(found[f"{name}_{what}"])[i] for what, i in (("radius", last), (below, 0))
    )
    return float(fine / coarse) if coarse > 0 else np.nan


def expects(parameters: RealSetting) -> list[Expectation]:
    r"""Return what theory says, which was written down before any network was trained on these.

    Where all assumptions of the law hold (orthogonal means, isotropic noise of their norm) only
    finite d is left: with k/2 opposing groups the nearest one is about 1.2 standard deviations of
    the noise nearer than the law, which is 8 % for 26 clusters in 384 dimensions and 4 % for ten in
    1280. So within 15 % there.

    Embeddings have noise that is several times as long as the means. With two groups there is one
    opposing group, the distance of averaged features is linear in the point, and so its median is
    near the law: within 15 %. With a group for each cluster the nearest of many counts, and noise
    three times as large, larger along the means, takes three times as much off: the law should be
    too large by more than 10 %, and noise of the paper's size should bring it back. Random sides
    put means that are alike onto opposite sides, so finer labels should help there; for the natural
    sides this was left open.

    Two of these failed and stay as they were: with two labels of WordNet, averaged features are at
    0.88, 0.95 and 0.82 of the law in three seeds; and with ten labels of CIFAR-10 at 0.98 or more.
    """
    fine = "a label for each cluster"
    rows = [
        at_least("the law's own assumptions: smallest radius / law", "assumed_low", 0.85, "1"),
        at_most("the law's own assumptions: largest radius / law", "assumed_high", 1.15, "1"),
        Expectation(
            "two labels: averaged features / law", "coarse_averages_ratio", 0.85, 1.15, "1"
        ),
        reported("two labels: radius / law", "coarse_ratio", "1"),
        at_most(f"{fine}: averaged features / law", "fine_averages_ratio", 0.9, "1"),
        reported(f"{fine}: radius / law", "fine_ratio", "1"),
        at_least(f"{fine}: averaged features / law, gain by less noise", "quiet_gain", 0.0),
        at_least(f"{fine}: accuracy of the side", "fine_accuracy", 0.7),
        reported("natural sides: certified radius, fine over coarse", "natural_gain", "> 1"),
        reported("natural sides: the same, as far as proved", "natural_proved_gain", "> 1"),
    ]
    if parameters.random_sides:
        rows += [
            at_least("random sides: certified radius, smallest", "random_gain", 1.0, "> 1"),
            reported("random sides: the same, as far as proved", "random_proved_gain", "> 1"),
        ]
    return [
        *rows,
        reported("share of radii where the certified bound is the radius", "exact_share"),
        reported("true radii above the certified ones by at most", "search_gain"),
    ]


def table(parameters: RealSetting, results: Results) -> Table:
    """Return every training: radii in units of the typical norm of a point, and what they mean."""
    rows = []
    for case in parameters.cases:
        values = [results[f"{case.name}_{name}"] for name in ("groups", *_COLUMNS)]
        for seed in range(len(values[0])):
            for i in range(values[0].shape[1]):
                groups, *numbers = (float(value[seed, i]) for value in values)
                rows.append((seed, case.name, int(groups), *numbers))
    return Table(("seed", "case", "groups", *_COLUMNS), rows)


def views(parameters: RealSetting, results: Results) -> list[View]:
    """Return radii, ratios and accuracies over the number of labels, and the interventions."""
    return [_over_groups(parameters, results), _causes(parameters, results)]


def _over_groups(parameters: RealSetting, results: Results) -> View:
    what, sides = parameters.titles
    random = [case.name for case in parameters.cases if case.sides]
    kinds = [("natural", sides.capitalize(), "fine", "solid")]
    panels = [Panel(sides.capitalize(), _RADIUS, _radii(results, ["natural"]))]
    if random:
        panels.append(Panel(f"{len(random)} random sides", _RADIUS, _radii(results, random)))
        kinds.append(("random", "Random sides", "coarse", "solid"))
    at = results["natural_groups"][0]
    ratios: list[Line] = []
    accuracies: list[Line] = []
    for name, label, role, dash in kinds:
        names = random if name == "random" else [name]
        for lines, shown in (
            (ratios, [_ratio(results, one) for one in names]),
            (accuracies, [results[f"{one}_accuracy"] for one in names]),
        ):
            lines.append(Line.over_seeds(label, at, np.concatenate(shown), role, dash))
    band = [Mark("+10 %", 1 + TOLERANCE, "y"), Mark("-10 %", 1 - TOLERANCE, "y")]
    panels += [
        Panel("Certified radius / the law", "ratio", ratios, band),
        Panel("Accuracy of the side", "accuracy", accuracies),
    ]
    note = "Medians of test points; a band is a standard deviation over seeds and random sides."
    title = f"Radii and the number of labels, {what}"
    return Curves(title, "number of labels", panels, x_scale="log", note=note)


_RADIUS = "median radius / √d"


def _radii(results: Results, names: Sequence[str]) -> list[Line]:
    at = results[f"{names[0]}_groups"][0]
    shown = (
        ("trained, certified", "radius", "fine", "solid"),
        ("averaged features, same points", "averages", "coarse", "dashed"),
        ("law, measured means and angles", "law", "paper", "dotted"),
        ("law, as if orthogonal", "orthogonal_law", "quiet", "dash-dot"),
    )
    return [
        Line.over_seeds(
            label, at, np.concatenate([results[f"{one}_{key}"] for one in names]), role, dash
        )
        for label, key, role, dash in shown
    ]


def _causes(parameters: RealSetting, results: Results) -> View:
    cases = [NATURAL, *CHANGES]
    levels, usual = parameters.levels(CHANGES[0]), parameters.levels(NATURAL)
    chosen = list(dict.fromkeys([levels[0], levels[len(levels) // 2], levels[-1]]))
    columns = {
        case.name: [(usual if case == NATURAL else levels).index(level) for level in chosen]
        for case in cases
    }
    looks = (("coarse", "dot"), ("third", "square"), ("fine", "ring"))
    panels = []
    for title, above, below in (
        ("Radius / law", "radius", "law"),
        ("What is learned: radius / averages", "radius", "averages"),
        ("Noise of the points: averages / law", "averages", "law"),
    ):
        series = [
            DotSeries.over_seeds(
                f"{level} labels",
                np.stack(
                    [_ratio(results, c.name, above, below)[:, columns[c.name][i]] for c in cases],
                    axis=1,
                ),
                *looks[i],
            )
            for i, level in enumerate(chosen)
        ]
        panels.append(DotPanel(title, "ratio", series, [Mark("1", 1.0)]))
    title = f"What breaks the law, {parameters.titles[0]}, {parameters.titles[1]}"
    return Dots(title, [case.title for case in cases], panels)


def conclude(parameters: RealSetting, results: Results) -> str:
    """Say where the law holds within a tenth, where not, and what each cause makes of it."""
    held: list[str] = []
    missed: list[str] = []
    for case in parameters.cases:
        if case in CHANGES:
            continue
        name = parameters.titles[1] if case == NATURAL else case.title
        ratios = _ratio(results, case.name).mean(axis=0)
        for groups, ratio in zip(results[f"{case.name}_groups"][0], ratios, strict=True):
            place = held if abs(ratio - 1) <= TOLERANCE else missed
            place.append(f"{name} with {groups:.0f} labels ({ratio:.2f})")
    fine = {case.name: _ratio(results, case.name)[:, -1].mean() for case in CHANGES}
    at = parameters.levels(CHANGES[0])[-1]
    last = parameters.levels(NATURAL).index(at)
    usual = _ratio(results, "natural")[:, last].mean()
    listed = "; ".join(f"{case.title} {fine[case.name]:.2f}" for case in CHANGES)
    return (
        f"Of {len(held) + len(missed)} trainings on {parameters.titles[0]}, the median certified "
        f"radius is within 10 % of the law with measured means and angles in {len(held)}: "
        f"{', '.join(held) or 'none'}. It is not in {', '.join(missed) or 'any other'}. At {at} "
        f"labels, radius / law is {usual:.2f}, and changed one by one: {listed}."
    )


def _experiment(name: str, parameters: RealSetting, quick: RealSetting, data: str) -> Experiment:
    return Experiment.of_module(
        __name__,
        id=name,
        title=f"Where the granularity law holds on {parameters.titles[0]}, and what breaks it",
        paper="none, an extension",
        parameters=parameters,
        quick=quick,
        seeds=3,
        calibrated=True,
        data=data,
        extra="text" if data == WORDNET else "vision",
    )


EXPERIMENTS = (
    _experiment(
        "granularity-real",
        WordNetSetting(),
        WordNetSetting(
            groups="2, 8, 26",
            changed_groups="2, 26",
            per_category=60,
            category_tests=20,
            searched=2,
            seconds=0.2,
        ),
        WORDNET,
    ),
    _experiment(
        "granularity-real-cifar10",
        ImageSetting(),
        replace(ImageSetting(), groups="2, 6, 10", changed_groups="2, 10", test_samples=1000),
        embedded.DATA,
    ),
)
