"""The tables and the picture of `benchmarks/estimators.py`, from its JSON files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_data import DATA
from featavg.drawing.style import new_figure, rendered, style
from peers import MODELS, POINTS, ROBUSTNESS, label_of, model_of

Array = np.ndarray[Any, Any]
Result = dict[str, Any]

TOLERANCE = 0.003  # of accuracy, where our radius is compared with a peer's
ROWS = [key + end for key in MODELS for end in ("", *(f"@{point}" for point in POINTS))]
_COLUMNS = 4
# how far below the best accuracy of a data set the picture reaches
_DEPTH = 0.06
_PEERS = {  # colour and marker
    "logistic": ("#777777", "v"),
    "linear-svm": ("#333333", "^"),
    "k-means": ("#E69F00", "s"),
    "glvq": ("#CC79A7", "D"),
    "1-nn": ("#8C564B", "X"),
    "rbf-svm": ("#B8A200", "<"),
    "lipschitz": ("#56B4E9", "o"),
    "lipschitz-2": ("#0072B2", "h"),
    "smoothing": ("#9467BD", "P"),
    "adversarial": ("#009E73", "p"),
}
_OURS = ("#000000", "#D55E00", "#7F0000", "#FF9896")


@dataclass(frozen=True, eq=False)
class Results:
    """What was measured: the seeds of each data set and model, and its knob."""

    seeds: dict[tuple[str, str], list[Result]]
    knobs: dict[tuple[str, str], Result]

    @property
    def data(self) -> list[str]:
        """The data sets that have results, in order."""
        return [name for name in DATA if any(data == name for data, _ in self.seeds)]

    def models(self, name: str, *, peers: bool) -> list[str]:
        """Return the peers, or our estimators, that have results on a data set, in order."""
        known = [row for row in ROWS if (name, row) in self.seeds]
        return [row for row in known if bool(model_of(row).family) != peers]

    def values(self, name: str, key: str, what: str) -> Array:
        """Return one number for each seed."""
        return np.array([row[what] for row in self.seeds[name, key]])

    def common_radii(self, name: str, key: str) -> Array:
        """Return the median radius over the points that every model has, for each seed."""
        return np.array([np.median(row["common_radii"]) for row in self.seeds[name, key]])


def read_results(folder: Path) -> Results:
    """Return the results below a folder."""
    seeds: dict[tuple[str, str], list[Result]] = {}
    knobs = {}
    for name in DATA:
        for key in ROWS:
            found = sorted((folder / name / key).glob("seed-*.json"))
            rows = [json.loads(path.read_text(encoding="utf-8")) for path in found]
            if rows:
                seeds[name, key] = rows
            path = folder / name / key / "knobs.json"
            if path.exists():
                knobs[name, key] = json.loads(path.read_text(encoding="utf-8"))
    return Results(seeds, knobs)


def tables(results: Results) -> str:
    """Return Markdown tables: each data set, then our radii as ratios to those of the peers."""
    parts = [_data_table(results, name) for name in results.data]
    families = dict.fromkeys(model.family for model in MODELS.values() if model.family)
    ratios = [_ratio_table(results, family) for family in families]
    return "\n".join([*parts, *filter(None, ratios)])


def _data_table(results: Results, name: str) -> str:
    keys = [*results.models(name, peers=True), *results.models(name, peers=False)]
    first = results.seeds[name, keys[0]][0]
    radii = first["certified_radii"]
    lines = [
        f"### {name}",
        "",
        f"{first['train_points']:,} training and {first['test_points']:,} test points; mean ± "
        "standard deviation over seeds. Certified accuracies are at the radii "
        f"{', '.join(f'{radius:.3g}' for radius in radii)}.",
        "",
        "| model | knob | seeds | accuracy, % | median radius | mean radius "
        "| certified accuracy, % | radii | exact | fit, s | certify 1,000, s |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    return "\n".join([*lines, *(_row(results, name, key) for key in keys), ""])


def _row(results: Results, name: str, key: str) -> str:
    rows = results.seeds[name, key]
    certified = 100 * np.mean([row["certified_accuracy"] for row in rows], axis=0)

    def mean(what: str) -> float:
        return float(results.values(name, key, what).mean())

    cells = [
        label_of(key),
        _knob(model_of(key).knob, rows[0]["knob"]),
        f"{len(rows)}",
        spread(100 * results.values(name, key, "accuracy"), 1),
        spread(results.values(name, key, "median_radius")),
        spread(results.values(name, key, "mean_radius")),
        " / ".join(f"{share:.1f}" for share in certified),
        f"{rows[0]['radius_points']:,}",
        f"{100 * mean('exact_share'):.0f} %",
        f"{mean('fit_seconds'):.1f}",
        f"{mean('certify_seconds_per_1000'):.2g}",
    ]
    return f"| {' | '.join(cells)} |"


def _knob(what: str, value: Any) -> str:
    if value is None:
        return ""
    return f"{what} {', '.join(f'{v:g}' for v in np.atleast_1d(value))}"


def spread(values: Array, digits: int | None = None) -> str:
    """Return mean and standard deviation, the mean with three digits unless told otherwise."""
    mean, deviation = float(values.mean()), float(values.std())
    if digits is None:
        digits = max(0, 2 - int(np.floor(np.log10(mean)))) if mean > 0 else 2
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def _ratio_table(results: Results, family: str) -> str:
    """Return our radius over each peer's, at the largest of ours that is as accurate as it."""
    ours = [key for key, model in MODELS.items() if model.family == family]
    data = [name for name in results.data if any((name, key) in results.seeds for key in ours)]
    if not data:
        return ""
    lines = [
        f"### {family} against each peer",
        "",
        f"The largest median radius among the operating points of {family} whose accuracy is at "
        f"least the peer's minus {100 * TOLERANCE:g} points (both means over seeds), as a ratio to "
        "the peer's radius (mean over seeds); a dash where none is as accurate.",
        "",
        f"| peer | {' | '.join(data)} |",
        "|---|" + "--:|" * len(data),
    ]
    for peer in ROWS:
        if not model_of(peer).family and any((name, peer) in results.seeds for name in data):
            cells = [_ratio(results, name, ours, peer) for name in data]
            lines.append(f"| {label_of(peer)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _ratio(results: Results, name: str, ours: list[str], peer: str) -> str:
    if (name, peer) not in results.seeds:
        peer = peer.partition("@")[0]  # its other operating points have the same knob
    if (name, peer) not in results.seeds:
        return ""
    lowest = results.values(name, peer, "accuracy").mean() - TOLERANCE - 1e-9
    best = -np.inf
    for key in ours:
        if (name, key) not in results.seeds:
            continue
        if results.values(name, key, "accuracy").mean() >= lowest:
            best = max(best, float(_ratios(results, name, key, peer).mean()))
    return f"{best:.2f}" if np.isfinite(best) else "–"


def _ratios(results: Results, name: str, key: str, peer: str) -> Array:
    """Return the ratio of median radii for each seed that both have, over the same points."""
    pair = (results.seeds[name, key], results.seeds[name, peer])
    same = pair[0][0]["radius_points"] == pair[1][0]["radius_points"]
    radii = [
        results.values(name, k, "median_radius") if same else results.common_radii(name, k)
        for k in (key, peer)
    ]
    both = min(map(len, radii))
    return radii[0][:both] / radii[1][:both]


def draw(results: Results) -> bytes:
    """Return the picture: accuracy against median radius, a panel for each data set."""
    names = results.data
    columns = min(_COLUMNS, len(names))
    rows = -(-len(names) // columns)
    with style():
        size = (max(4 * columns, 8), 3.4 * rows + 1.4)
        figure, panels = new_figure(*size, columns=columns, rows=rows)
        labels: dict[str, Any] = {}
        for panel, name in zip(panels, names, strict=False):
            _draw_panel(panel, results, name)
            handles, texts = panel.get_legend_handles_labels()
            labels.update(zip(texts, handles, strict=True))
        for panel in panels[len(names) :]:
            panel.set_axis_off()
        figure.legend(
            labels.values(), labels.keys(), ncols=max(2, columns), loc="outside lower center"
        )
    return rendered(figure, "png")


def _draw_panel(panel: Any, results: Results, name: str) -> None:
    """Draw test results with error bars, over thin lines of the held-out points of all knobs."""
    keys = [*results.models(name, peers=True), *results.models(name, peers=False)]
    lowest = max(results.values(name, key, "accuracy").mean() for key in keys) - _DEPTH
    for key in results.models(name, peers=True):
        colour, marker = _PEERS[key.partition("@")[0]]
        if "@" in key:
            small = {"color": colour, "marker": marker, "markersize": 3.5}
            _draw_points(panel, results, name, [key], "", **small)
            continue
        if (name, key) in results.knobs:
            path = _best_points(results.knobs[name, key]["rows"])
            path = path[path[:, 1] >= lowest]
            panel.plot(path[:, 0], 100 * path[:, 1], color=colour, lw=0.8, alpha=0.5, zorder=1)
        _draw_points(panel, results, name, [key], MODELS[key].label, color=colour, marker=marker)
    families: dict[str, list[str]] = {}
    for key in results.models(name, peers=False):
        families.setdefault(MODELS[key].family, []).append(key)
    for colour, (family, points) in zip(_OURS, families.items(), strict=False):
        label = f"{family}, robustness 0 to {max(ROBUSTNESS):g}"
        ours = {"color": colour, "marker": "*", "markersize": 10, "zorder": 4, "linestyle": "-"}
        _draw_points(panel, results, name, points, label, **ours)
    panel.set(title=name, xlabel="median certified radius", ylabel="accuracy, %")
    panel.set_ylim(bottom=100 * lowest)
    panel.set_xlim(left=0)


def _best_points(rows: list[Result]) -> Array:
    """Return radius and accuracy of the knobs that no other knob beats in both, by radius."""
    points = np.array([(row["median_radius"], row["accuracy"]) for row in rows])
    points = points[np.lexsort((-points[:, 1], -points[:, 0]))]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(points[:-1, 1])])
    return points[points[:, 1] > before]


def _draw_points(
    panel: Any, results: Results, name: str, keys: list[str], label: str, **look: Any
) -> None:
    # of each row on its own: where a run was stopped, rows have different numbers of seeds
    radii, accuracies = (
        [results.values(name, key, what) for key in keys] for what in ("median_radius", "accuracy")
    )
    look = {"linestyle": "none", "markersize": 6, "zorder": 3, "elinewidth": 1, **look}
    panel.errorbar(
        [np.mean(values) for values in radii],
        [100 * np.mean(values) for values in accuracies],
        xerr=[np.std(values) for values in radii],
        yerr=[100 * np.std(values) for values in accuracies],
        label=label or None,
        **look,
    )
