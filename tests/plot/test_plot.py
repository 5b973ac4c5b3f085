"""`featavg.plot`, and the pictures that results have."""

from __future__ import annotations

import base64
import io
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image
from sklearn.linear_model import LogisticRegression

import featavg as fa
from featavg.drawing import pictured
from featavg.drawing.common import over_training
from featavg.drawing.pictured import on_axes
from featavg.estimators.frontier import Frontier


@pytest.fixture(scope="module")
def train():
    law = fa.MultiCluster(clusters=5, dim=60, positive=[0, 2, 3])
    return law.sample(80, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def run(train):
    rng = np.random.default_rng(1)
    net = fa.BinaryNet.init(train, width=2, weight_scale=1e-4, bias_scale=1e-4, rng=rng)
    return fa.descend(net, train, learning_rate=0.02, steps=60, record=12)


@pytest.fixture(scope="module")
def frontier():
    return fa.AveragingClassifier(max_iter=300, random_state=0).fit(*blobs()).frontier_


def blobs():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], 40)
    return rng.standard_normal((80, 4)) + 2 * y[:, None], y


@pytest.fixture
def pictures(run, train, frontier, audited):
    """Every function with what it takes."""
    found = fa.exact_radii(run.net, train.x[:10], train.y[:10])
    curve = fa.robust_curve(run.net, train.x[:10], train.y[:10], radii=np.arange(8))
    return {
        "alignment": (run.net, train),
        "boundary": (run.net, train.x[0]),
        "coefficients": (run,),
        "frontier": (frontier,),
        "geometry": (train,),
        "radii": (found,),
        "robust_curve": (curve,),
    }


def test_every_function_draws_onto_given_axes_or_a_new_figure(pictures):
    assert sorted(pictures) == sorted(fa.plot.__all__) == dir(fa.plot)
    for name, arguments in pictures.items():
        _, (first, given) = plt.subplots(1, 2)
        assert getattr(fa.plot, name)(*arguments, ax=given) is given
        assert given.has_data(), name
        assert given.get_title(), name
        assert not first.has_data()
        number = len(plt.get_fignums())
        made = getattr(fa.plot, name)(*arguments)
        assert made.figure is plt.gcf()
        assert len(plt.get_fignums()) == number + 1
        plt.close("all")
        with pytest.raises(fa.InputError, match="ax must be axes of Matplotlib; got 3"):
            getattr(fa.plot, name)(*arguments, ax=3)


def test_alignment_accepts_what_the_index_accepts(run, train):
    # two neurons a side for three clusters, which the paper's matrix refuses
    assert np.isfinite(fa.averaging_index(run.net, train))
    axes = fa.plot.alignment(run.net, train)
    np.testing.assert_allclose(
        axes.images[0].get_array(), fa.alignment(run.net, train), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(
        fa.alignment(run.net, train), fa.alignment(run.net, train.centers)
    )
    assert f"{fa.averaging_index(run.net, train):.2f}" in axes.get_title()
    with pytest.raises(fa.InputError, match="width must be at least 3"):
        fa.plot.alignment(run.net, train, equivalent=True)
    wide = fa.BinaryNet(np.random.default_rng(0).standard_normal((6, 60)))
    shown = fa.plot.alignment(wide, train, equivalent=True).images[0].get_array()
    np.testing.assert_allclose(shown, fa.equivalent_alignment(wide, train), rtol=1e-5, atol=1e-6)
    other = fa.MultiCluster(clusters=4, dim=50).sample(9, rng=np.random.default_rng(0))
    for function in (fa.alignment, fa.averaging_index, fa.plot.alignment):
        with pytest.raises(fa.InputError):
            function(run.net, other)


def test_the_band_of_coefficients_reaches_from_the_smallest_to_the_largest(run, train):
    axes = fa.plot.coefficients(run)
    own = run.net.neuron_signs[:, None] == train.law.signs[None, :]
    values = run.feature_coefficients
    edges = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert edges.max() == pytest.approx(values[:, own].max(), rel=1e-5)
    mean, others = axes.lines
    np.testing.assert_allclose(mean.get_ydata(), values[:, own].mean(axis=1), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(
        others.get_ydata(), np.abs(values[:, ~own]).max(axis=1), rtol=1e-5, atol=1e-9
    )
    np.testing.assert_allclose(mean.get_xdata(), run.times, rtol=1e-5)


def test_times_that_no_float_holds_are_shown_by_their_logarithm():
    view = over_training(np.array([-np.inf, 0, 2000]), np.ones((3, 2)), np.ones((3, 0)))
    axes = on_axes(view)
    assert axes.get_xlabel() == "log₁₀(ηt)"
    assert axes.get_xlim()[1] == pytest.approx(2000 / np.log(10), rel=1e-3)


def test_a_robust_curve_shows_what_is_known(run, train):
    points = {"x": train.x[:20], "y": train.y[:20], "radii": [4, 0, 2]}
    exact = fa.robust_curve(run.net, **points)
    (line,) = exact.plot().lines
    np.testing.assert_array_equal(line.get_xdata(), [0, 2, 4])
    np.testing.assert_allclose(line.get_ydata(), exact.accuracy[[1, 2, 0]], atol=1e-6)
    assert line.get_linestyle() == "-"
    rng = np.random.default_rng(0)
    attack = fa.robust_curve(run.net, **points, method="pgd", rng=rng, steps=2)
    both = fa.plot.robust_curve(exact, attack, labels=["a", "b"], theory=[3.0])
    assert [text.get_text() for text in both.get_legend().get_texts()] == [
        "a",
        "b, not broken by PGD",
    ]
    assert [line.get_linestyle() for line in both.lines[:2]] == ["-", "--"]
    assert both.lines[2].get_xdata() == [3.0, 3.0]
    bracket = fa.RobustCurve(
        np.array([4.0, 0, 2]), np.array([3.0, 5]), np.array([1.0, 5]), "bracket", "none"
    )
    ends = dict(zip(("at least", "at most"), bracket.plot().lines, strict=True))
    assert ends["at most"].get_ydata().tolist() == [1, 1, 0.5]
    assert ends["at least"].get_ydata().tolist() == [1, 0.5, 0.5]


def test_radii_show_the_share_of_points_above_each_radius():
    found = fa.Radii(
        lower=np.array([1.0, 2.0, 3.0, 0.5]),
        upper=np.array([1.0, 2.0, np.inf, 4.0]),
        perturbations=np.zeros((4, 2)),
        norm="linf",
        turns=np.ones(4, dtype=bool),
    )
    axes = found.plot()
    assert axes.get_xlabel() == "radius (L∞)"
    least, most = axes.lines[:2]
    for line, values in ((least, found.lower), (most, found.upper)):
        at = np.flatnonzero(line.get_xdata() <= 2.5)[-1]
        assert line.get_ydata()[at] == pytest.approx((values > 2.5).mean())
    two = fa.plot.radii(found, found, labels=["first", "second"])
    assert len(two.get_legend().get_texts()) == 4
    exact = fa.Radii(np.ones(2), np.ones(2), np.zeros((2, 2)), "l2", np.ones(2, dtype=bool))
    with pytest.raises(fa.InputError, match="the same norm; got l2 and linf"):
        fa.plot.radii(found, exact)


def test_the_frontier_marks_the_chosen_place(frontier):
    axes = fa.plot.frontier(frontier)
    path, chosen = axes.lines[:2]
    np.testing.assert_allclose(path.get_xdata(), frontier.radius, rtol=1e-5)
    np.testing.assert_allclose(path.get_ydata(), frontier.accuracy, rtol=1e-5)
    assert chosen.get_xdata()[0] == pytest.approx(frontier.radius[frontier.chosen], rel=1e-5)
    several = fa.plot.frontier(frontier, frontier, labels=["one", "two"])
    assert len(several.get_legend().get_texts()) == 4


def test_frontiers_are_drawn_whole_and_at_their_own_scale():
    low, high = (
        Frontier(np.arange(1, 4), np.array(accuracy), np.array(radius), 100, 100)
        for accuracy, radius in (([0.9, 0.89, 0.88], [2, 3, 4]), ([1.0, 0.99, 0.95], [6, 7, 8]))
    )
    for axes in (fa.plot.frontier(low, high, labels=["one", "two"]), fa.plot.frontier(low)):
        x, y = (np.concatenate([get(line) for line in axes.lines]) for get in (_x, _y))
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        assert left < x.min() < x.max() < right
        assert 0.8 < bottom < y.min() < y.max() < top


def _x(line):
    return line.get_xdata()


def _y(line):
    return line.get_ydata()


def test_legends_and_numbers_of_small_pictures_are_not_cut(run):
    signs = np.repeat([1.0, -1.0], 5)
    net = fa.BinaryNet(signs[:, None] * np.eye(2)[[0] * 5 + [1] * 5] + 0.1)
    with mpl.rc_context({"font.size": 10}):
        for result in (run, net):
            figure = Figure(figsize=pictured._SMALL, layout="constrained", dpi=96)
            axes = figure.subplots()
            result.plot(axes)
            figure.canvas.draw()
            assert figure.bbox.x0 <= axes.get_tightbbox().x0
            assert axes.get_tightbbox().x1 <= figure.bbox.x1
            for text in axes.texts:
                assert text.get_window_extent().width < axes.bbox.width / 10


def test_the_boundary_is_where_the_decision_turns(run, train):
    x = train.x[0]
    found = fa.exact_radii(run.net, x[None])
    axes = fa.plot.boundary(run.net, x, toward=-train.y[0] * fa.averaged_direction(train))
    circle, shortest = axes.lines[0], axes.lines[1]
    assert np.hypot(*circle.get_data()).max() == pytest.approx(found.lower[0])
    assert shortest.get_xdata()[1] == pytest.approx(found.upper[0], rel=1e-5)
    along = axes.lines[3]
    end = np.array([along.get_xdata()[1], along.get_ydata()[1]])
    first = found.perturbations[0] / np.linalg.norm(found.perturbations[0])
    toward = -train.y[0] * fa.averaged_direction(train)
    assert (toward @ first) * np.linalg.norm(end) == pytest.approx(end[0], rel=1e-6)
    before, after = (x + f * np.linalg.norm(end) * toward for f in (0.99, 1.01))
    assert run.net.predict([before]) == run.net.predict([x])
    assert run.net.predict([after]) != run.net.predict([x])


def test_wrong_values_are_refused_in_one_short_sentence(run, train):
    array = np.eye(60)
    curve = fa.robust_curve(run.net, train.x[:5], train.y[:5], radii=[0, 1])
    wrong = {
        "sample must be a Sample, which": [
            lambda: fa.plot.alignment(run.net, train.centers),
            lambda: fa.averaging_index(run.net, train.centers),
            lambda: fa.equivalent_alignment(run.net, train.centers),
        ],
        "theory must hold real numbers; got": [lambda: fa.plot.robust_curve(curve, theory="x")],
        "labels must be a list of names; got": [
            lambda: fa.plot.robust_curve(curve, curve, labels="ab"),
            lambda: fa.plot.robust_curve(curve, curve, labels=[1, 2]),
        ],
        "data must be a Sample or an Audit; got": [lambda: fa.plot.geometry(array)],
        "found must be of the class Radii; got": [lambda: fa.plot.radii(array)],
        "models must be fitted classifiers of featavg; got": [lambda: fa.plot.frontier(array)],
        "ax must be axes of Matplotlib; got": [lambda: run.plot(ax=array)],
    }
    for beginning, calls in wrong.items():
        for call in calls:
            with pytest.raises(fa.InputError) as caught:
                call()
            message = str(caught.value)
            assert message.startswith(beginning)
            assert message.endswith(".")
            assert "\n" not in message
            assert len(message) < 150


def test_the_boundary_of_other_models():
    X, y = blobs()
    model = LogisticRegression().fit(X, y)
    axes = fa.plot.boundary(model, X[0])
    distance = abs(model.decision_function(X[:1])[0]) / np.linalg.norm(model.coef_)
    assert axes.get_title().endswith(f"{distance:.3g}")
    constant = fa.ShallowNet(np.zeros((1, 2)), [0.0], [[1.0]], [1.0])
    with pytest.raises(fa.InputError, match="whose decision a perturbation turns"):
        fa.plot.boundary(constant, [1.0, 2.0])
    with pytest.raises(fa.InputError, match="toward must not be zero"):
        fa.plot.boundary(model, X[0], toward=np.zeros(4))
    line = fa.ShallowNet([[1.0]], [0.0], [[1.0]], [-1.0])
    with pytest.raises(fa.InputError, match="at least two coordinates"):
        fa.plot.boundary(line, [3.0])


def test_geometry_of_a_sample_and_of_an_audit(train, audited):
    axes = fa.plot.geometry(train)
    order = [0, 2, 3, 1, 4]  # the positive clusters first
    centers = train.centers[order] / np.linalg.norm(train.centers[order], axis=1, keepdims=True)
    np.testing.assert_allclose(axes.images[0].get_array(), centers @ centers.T, atol=1e-5)
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1", "3", "4", "2", "5"]
    assert [line.get_ydata()[0] for line in axes.lines][:1] == [2.5]
    axes = fa.plot.geometry(audited)
    np.testing.assert_allclose(axes.images[0].get_array(), audited.geometry.cosines, atol=1e-5)


def test_wrong_results_are_refused_in_one_sentence(run, train):
    for call, message in (
        (lambda: fa.plot.coefficients(train), "run must be of the class Trajectory; got Sample"),
        (lambda: fa.plot.geometry(run), "data must be a Sample or an Audit; got Trajectory"),
        (lambda: fa.plot.radii(), "at least one Radii; got none"),
        (lambda: fa.plot.robust_curve(), "at least one curve; got none"),
        (lambda: fa.plot.robust_curve(run), "curves must be of the class RobustCurve"),
        (lambda: fa.plot.frontier(), "at least one classifier; got none"),
        (lambda: fa.plot.frontier(LogisticRegression()), "fitted classifiers of featavg"),
    ):
        with pytest.raises(fa.InputError, match=re.escape(message)):
            call()


def test_results_show_a_small_picture_in_a_notebook(pictures, run, train, frontier, audited):
    shallow = fa.ShallowNet(np.zeros((0, 3)), [], np.zeros((2, 0)), [0, 1], linear=np.eye(2, 3))
    results = [run.net, shallow, train, run, frontier, audited]
    results += [pictures["radii"][0], pictures["robust_curve"][0]]
    for result in results:
        shown = result._repr_html_()
        address = re.search(r'src="data:image/png;base64,([^"]+)"', shown).group(1)
        size = Image.open(io.BytesIO(base64.b64decode(address))).size
        assert 200 < size[1] < size[0] < 700
        assert len(shown) < 100_000
        if type(result) is not fa.Sample:
            assert "<code>" + repr(result).replace(">", "&gt;") + "</code>" in shown
    assert not plt.get_fignums()


def test_a_network_of_many_neurons_says_which_are_shown():
    net = fa.BinaryNet(np.random.default_rng(0).standard_normal((400, 3)))
    view = net.view()
    assert view.title.endswith("400 neurons: the first 200")
    assert len(view.panels[0].mean[0]) == 200


def test_only_public_names_are_listed():
    assert dir(fa) == sorted(fa.__all__)
    assert "plot" in dir(fa)
    assert "import_module" not in dir(fa)
