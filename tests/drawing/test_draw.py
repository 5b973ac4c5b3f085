"""Views as Matplotlib draws them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from featavg.drawing import dots as dot_panels
from featavg.drawing import draw
from featavg.drawing.style import COARSE, FINE, LINE_STYLES, QUIET, ROLES
from featavg.drawing.views import (
    DASHES,
    HOLDS,
    MARKERS,
    NOT_STATED,
    VIOLATED,
    ClaimRow,
    Claims,
    Curves,
    DotPanel,
    Dots,
    DotSeries,
    HeatMaps,
    Line,
    Mark,
    Matrix,
    Panel,
)
from featavg.drawing.views import ROLES as ROLE_NAMES
from featavg.experiments import EXPERIMENTS, averaging, run
from featavg.lab.tables import tidy_rows
from featavg.theory import claim

TENS = [rf"$\mathdefault{{10^{{{power}}}}}$" for power in (1, 2, 3)]


def curves(*panels: Panel, **options) -> Curves:
    return Curves("title", "radius", panels, **options)


def panel(*lines: Line, **options) -> Panel:
    return Panel("panel", "accuracy", lines, **options)


def matrices(count: int, size: int = 3, **options) -> HeatMaps:
    shown = [Matrix(f"matrix {i}", [np.eye(size).tolist()]) for i in range(count)]
    return HeatMaps("title", "row", "column", "cosine", shown, **options)


def test_every_role_and_dash_has_a_look():
    assert set(ROLES) == set(ROLE_NAMES)
    assert set(LINE_STYLES) == set(DASHES)
    assert set(dot_panels._LOOKS) == set(MARKERS)


@pytest.mark.parametrize(("last", "written"), [(10, ["2", "5", "10"]), (2000, TENS)])
def test_short_logarithmic_axes_have_numbers_that_can_be_read(last, written):
    line = Line.over_seeds("", [2, last], [[0.0, 1.0]], "fine")
    drawn = draw.figure([curves(panel(line), x_scale="log")])
    axis = drawn.axes[0].xaxis
    low, high = drawn.axes[0].get_xlim()
    places = [float(x) for x in axis.get_majorticklocs() if low <= x <= high]
    assert axis.get_major_formatter().format_ticks(places) == written


def test_panels_of_the_same_quantity_have_one_scale():
    low, high = (Line.over_seeds("", [0, 1], [[0.0, top]], "fine") for top in (0.3, 1.0))
    other = replace(panel(low), y="difference")
    view = curves(panel(low), panel(high), other, panel(high, y_scale="log"))
    first, second, third, fourth = (axes.get_ylim() for axes in draw.figure([view]).axes)
    assert first == second
    assert third[1] < 0.4 < first[1]
    assert fourth != first


def test_a_line_has_the_colour_of_its_role_and_a_band_of_its_deviation():
    line = Line.over_seeds("exact", [0, 1, 2], [[1.0, 0.8, 0.0], [1.0, 0.6, 0.2]], "fine", "dashed")
    (axes,) = draw.figure([curves(panel(line))]).axes
    (drawn,) = axes.lines
    assert to_hex(drawn.get_color()).upper() == FINE
    assert drawn.get_linestyle() == "--"
    np.testing.assert_allclose(drawn.get_ydata(), [1.0, 0.7, 0.1])
    ((band,),) = (axes.collections,)
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx(1.0)
    assert heights.min() == pytest.approx(0.1 - np.std([0, 0.2], ddof=1), abs=1e-6)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["exact"]


def test_the_paper_does_not_stretch_the_axis_and_its_points_beyond_are_left_out():
    ours = Line("ours", [0, 1, 2], [1, 0.5, 0])
    paper = Line("paper", [0, 1, 5], [1, 0.4, 0.3], role="paper", dash="points")
    (axes,) = draw.figure([curves(panel(ours, paper))]).axes
    assert axes.get_xlim() == (0, 2)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [1, 0.4, np.nan])


def test_gaps_marks_and_logarithmic_axes():
    line = Line("a", [1, 10, 100, 1000], [None, 1e-3, 0.0, 2.0])
    marks = [Mark("here", 10.0), Mark("bound", 4.0, "y")]
    view = curves(panel(line, marks=marks, y_scale="log"), x_scale="log")
    (axes,) = draw.figure([view]).axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_ylim() == pytest.approx((1e-3 / 1.3, 4 * 1.3))
    assert {text.get_text() for text in axes.texts} == {"here", "bound"}
    (axes,) = draw.figure([curves(panel(Line("a", [], [])))]).axes
    assert axes.get_ylim()[1] >= 1  # nothing to show, and no error


@pytest.mark.parametrize(("x", "scale"), [(0.0, "linear"), (-3.0, "linear"), (10.0, "log")])
def test_a_single_place_has_room_on_both_sides(x, scale):
    line = Line.over_seeds("one seed", [x], np.array([[0.5]]), "coarse", "points")
    (axes,) = draw.figure([curves(panel(line), x_scale=scale)]).axes
    low, high = axes.get_xlim()
    assert low < x < high


def test_heat_maps_share_a_colour_bar_and_draw_the_last_frame():
    over_time = Matrix("m", [[[0.0, 0.1]], [[0.25, 0.75]]])
    view = HeatMaps("t", "row", "column", "cosine", [over_time], frame="step", frames=["0", "9"])
    axes, bar = draw.figure([view]).axes
    np.testing.assert_array_equal(axes.images[0].get_array(), [[0.25, 0.75]])
    assert [text.get_text() for text in axes.texts] == ["0.25", "0.75"]
    assert bar.get_ylabel() == "cosine"
    assert len(draw.figure([matrices(3)]).axes) == 4


def test_names_that_look_like_mathematics_are_shown_as_they_are():
    names = [r"$\frac{", "$x$", "a_b"]
    axes, _ = draw.figure([matrices(1, row_names=names, column_names=names)]).axes
    figure = draw.figure([matrices(1, row_names=names, column_names=names)])
    figure.savefig("/dev/null", format="png")  # would fail on invalid mathematics
    assert [t.get_text() for t in axes.get_yticklabels()] == [r"\$\frac{", r"\$x\$", "a_b"]


def test_subscripts_are_set():
    shown = replace(matrices(1), panels=[Matrix("σ_w = 0.1 of f_FA", [[[1.0]]])])
    axes, _ = draw.figure([shown]).axes
    assert axes.get_title() == r"$σ_{\mathrm{w}}$ = 0.1 of $f_{\mathrm{FA}}$"


def test_panels_of_several_views_are_put_into_rows():
    line = Line("a", [0, 1], [0, 1])
    several = [curves(*[panel(line)] * 4, note="Some note."), matrices(3)]
    figure = draw.figure(several)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["panel"] * 4 + ["matrix 0", "matrix 1", "matrix 2"]
    assert {axes.get_subplotspec().rowspan.start for axes in figure.axes[:4]} == {0}
    assert figure.get_supxlabel() == "Some note."
    with pytest.raises(ValueError, match="at least one panel"):
        draw.figure([])


def row(name: str, verdict: str, slack: float | None) -> ClaimRow:
    return ClaimRow(name, "4", "s", "b", "", verdict, 1.0, 1.0, slack, 0, 1)


def test_claims_are_bars_from_one_by_their_slack():
    rows = [
        row("holds", HOLDS, 100.0),
        row("never near", HOLDS, None),
        row("violated", VIOLATED, 0.01),
        row("silent", NOT_STATED, None),
    ]
    figure = draw.figure([Claims("Claims", rows)])
    bars = [bar for axes in figure.axes for bar in axes.patches]
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    assert ends == pytest.approx([100, 1e6, 0.01, 1.0])
    assert [to_hex(bar.get_facecolor()).upper() for bar in bars] == [FINE, FINE, COARSE, QUIET]
    assert figure.get_supxlabel().startswith("Claims: 2 hold (blue), 1 are violated (orange), 1 ")


def test_claims_are_written_in_words_below_the_names_of_their_sections():
    rows = [
        replace(row("theorem-4.5.2.lambda", HOLDS, 2.0), section="4", statement="λ of f_FA grows."),
        replace(row("assumption-4.3.samples-limit", HOLDS, 2.0), section="3", statement="few."),
        replace(row("frei-4.2", VIOLATED, 0.5), section="3", statement="costs $5."),
        replace(row("lemma-c.10.7", HOLDS, 1.0), section="C", statement="all on."),
    ]
    left, right = draw.figure([Claims("Claims", rows)]).axes
    assert [text.get_text() for axes in (left, right) for text in axes.get_yticklabels()] == [
        "4",
        r"Theorem 4.5.2 (lambda): λ of $f_{\mathrm{FA}}$ grows",
        "3",
        "Assumption 4.3 (samples limit): few",
        r"Frei et al. 4.2: costs \$5",
        "C",
        "Lemma C.10.7: all on",
    ]


def test_the_ledger_has_the_verdicts_of_the_views():
    assert (claim.HOLDS, claim.VIOLATED, claim.NOT_STATED) == (HOLDS, VIOLATED, NOT_STATED)


def test_every_experiment_can_be_drawn():
    assert all(e.views is not None or e.plot is not None for e in EXPERIMENTS.values())


def test_without_a_plot_the_views_are_the_figure(tmp_path):
    parameters = replace(averaging.EXPERIMENT.quick, dim=60, samples=40, test_samples=4)
    finished = run(averaging.EXPERIMENT, parameters, seeds=1, out=tmp_path)
    assert averaging.EXPERIMENT.plot is None
    assert (finished.folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (finished.folder / "views.json").exists()


def test_rows_have_the_seed_the_label_the_places_and_the_values(rng):
    values, more = rng.random((2, 1, 3)), np.arange(6).reshape(2, 1, 3)
    rows = tidy_rows(values, more, label=(2, "exact"))
    assert rows[4] == (1, 2, "exact", 0, 1, values[1, 0, 1], 4)
    assert [type(entry) for entry in rows[4]] == [int, int, str, int, int, float, int]
    assert tidy_rows(values, axes=())[4] == (1, values[1, 0, 1])
    assert tidy_rows(values, axes=[("a",)])[4] == (1, "a", values[1, 0, 1])


ROWS, GROUPS = ["$a$", "b", "c"], ["first", "first", "second"]


def test_dots_stand_in_their_rows_with_their_deviations():
    measured = DotSeries.over_seeds("ours", [[1.0, 4.0, np.nan], [3.0, 4.0, 5.0]], "fine")
    theory = DotSeries("theory", [2.5, None, 5.0], role="paper", marker="bar")
    marks = [Mark("bound", 9.0)]
    views = [Dots("The finding", ROWS, [DotPanel("", "radius", [measured, theory], marks)], GROUPS)]
    figure = draw.figure(views)
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["first", r"\$a\$", "b", "second", "c"]
    weights = [label.get_fontweight() for label in axes.get_yticklabels()]
    assert [weight == "bold" for weight in weights] == [True, False, False, True, False]
    heights = dict(zip(names, axes.get_yticks(), strict=True))
    dots, bars = (line for line in axes.lines if line.get_marker() in "o|")
    np.testing.assert_array_equal(dots.get_xdata(), [2.0, 4.0, np.nan])
    np.testing.assert_array_equal(bars.get_xdata(), [2.5, np.nan, 5.0])
    rows = [heights[name] for name in (names[1], "b", "c")]
    for line in (dots, bars):
        np.testing.assert_array_equal(line.get_ydata(), rows)
    assert to_hex(dots.get_color()).upper() == FINE
    errors = [c.get_segments() for c in axes.collections if c.get_segments()[0][0][1] != 0][-1]
    np.testing.assert_allclose(errors[0][:, 0], [2 - np.sqrt(2), 2 + np.sqrt(2)], rtol=1e-5)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row is above
    low, high = axes.get_xlim()
    assert low < 2 - np.sqrt(2) < 9 < high
    assert figure.get_suptitle() == "The finding"


def test_panels_of_dots_share_names_and_legend_and_have_axes_of_their_own():
    both = [DotSeries("loss", [1.0, 2, 3]), DotSeries("steps", [1.0, 2, 30], None, "fine", "ring")]
    panels = [
        DotPanel("A", "a", both),
        DotPanel("B", "b", both, scale="log"),
        DotPanel("C", "c", both, zero=True),
    ]
    left, middle, right = draw.figure([Dots("t", ROWS, panels)]).axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["loss", "steps"]
    assert middle.get_legend() is right.get_legend() is None
    assert {label.get_text() for label in middle.get_yticklabels()} == {""}
    assert (left.get_xscale(), middle.get_xscale()) == ("linear", "log")
    assert left.get_xlim()[0] > -1 > right.get_xlim()[0]
    loss, steps = left.lines
    assert (loss.get_ydata() < np.arange(3)).all()  # apart from each other, within the row
    assert (steps.get_ydata() > np.arange(3)).all()
    assert np.abs(loss.get_ydata() - np.arange(3)).max() < 0.5
    assert left.get_ylim() == middle.get_ylim() == right.get_ylim()


def test_panels_of_dots_with_the_same_axis_have_one_scale():
    near, far = (DotSeries("", [0.0, 1.0, most]) for most in (2.0, 20.0))
    panels = [
        DotPanel("near", "radius", [near]),
        DotPanel("far", "radius", [far]),
        DotPanel("from 0", "radius", [near], zero=True),
        DotPanel("another", "norm", [near]),
    ]
    first, second, from_zero, another = draw.figure([Dots("t", ROWS, panels)]).axes
    assert first.get_xlim() == second.get_xlim()
    assert first.get_xlim()[1] > 20
    assert from_zero.get_xlim()[1] < 3
    assert another.get_xlim()[1] < 3


def test_a_view_beside_dots_has_rows_and_a_title_of_its_own():
    shown = Dots("Dots", ROWS, [DotPanel("p", "x", [DotSeries("", [1.0, 2, 3])])] * 3)
    figure = draw.figure([shown, curves(panel(Line("a", [0, 1], [0, 1])), note="Some note.")])
    above, below = figure.subfigs
    assert (len(above.axes), len(below.axes)) == (3, 1)
    assert (above.get_suptitle(), below.get_suptitle()) == ("Dots", "title")
    assert (above.get_supxlabel(), below.get_supxlabel()) == ("", "Some note.")
