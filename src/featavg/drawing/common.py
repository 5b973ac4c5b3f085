"""Views that results, experiments, the audit and `featavg.drawing` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg.arrays import FloatArray, unit_rows
from featavg.drawing.views import Curves, HeatMaps, Line, Mark, Matrix, Panel, rounded

_NORMS = {"l2": "L2", "linf": "L∞"}
_MOST_VECTORS = 200  # of which cosines are shown
_RADII = 400
_LARGEST_LOG = 700.0  # of a time that a float can hold


def cosine_maps(title: str, panels: Sequence[Matrix], columns: str, **look: Any) -> HeatMaps:
    """Return the cosines of centres, a row each, and weights or neurons: Figure 2.

    `look` are further fields of `HeatMaps`.
    """
    return HeatMaps(title, rows="centre", columns=columns, value="cosine", panels=panels, **look)


def mutual_cosines(title: str, vectors: FloatArray, what: str) -> HeatMaps:
    """Return the cosines between vectors, or between the first ones where there are very many.

    Examples
    --------
    >>> view = mutual_cosines("Cosines between 2 neurons", np.array([[1.0, 0], [1, 1]]), "neuron")
    >>> view.panels[0].mean[0]
    [[1.0, 0.707107], [0.707107, 1.0]]
    """
    shown = unit_rows(vectors[:_MOST_VECTORS].astype(np.float64))
    if len(shown) < len(vectors):
        title = f"{title}: the first {len(shown)}"
    cosines = shown @ shown.T
    low = lowest_cosine(cosines)
    return HeatMaps(title, what, what, "cosine", [Matrix(title, [rounded(cosines)])], low=low)


def named_cosines(title: str, cosines: FloatArray, names: Sequence[str]) -> HeatMaps:
    """Return the cosines between things that have names: Figure 10."""
    panel = Matrix(title, [rounded(cosines)])
    look: dict[str, Any] = {"row_names": names, "column_names": names, "low": -1.0}
    return HeatMaps(title, "", "", "cosine", [panel], **look)


def lowest_cosine(cosines: ArrayLike) -> float:
    """Return the lower end of the colour scale of cosines: -1 where some are clearly negative."""
    return -1.0 if np.min(cosines) < -0.1 else 0.0


def robust_accuracy(
    lines: Sequence[Line],
    *,
    title: str = "Robust accuracy",
    norm: str = "l2",
    y: str = "robust accuracy",
    marks: Sequence[Mark] = (),
) -> Curves:
    """Return curves over the radius: Figure 3."""
    return Curves(title, f"radius ({_NORMS.get(norm, norm)})", [Panel(title, y, lines, marks)])


def shares_above(
    label: str,
    lower: FloatArray,
    upper: FloatArray,
    role: str,
    *,
    radii: FloatArray | None = None,
    exact: bool = True,
) -> list[Line]:
    """Return the share of points whose radius is larger than each radius.

    One line where the bounds agree to the eye, otherwise one for each; `lower` is left out where it
    is 0 for every point, because nothing is proved then.

    Examples
    --------
    >>> lines = shares_above("net", np.array([1.0, 2.0]), np.array([1.0, 2.0]), "fine")
    >>> [line.label for line in lines], lines[0].mean[0], lines[0].mean[-1]
    (['net'], 1.0, 0.0)
    """
    at = radius_grid(lower, upper) if radii is None else radii
    above = (upper[:, None] > at).mean(axis=0)
    certified = (lower[:, None] > at).mean(axis=0)
    if not lower.any():
        return [Line(label, rounded(at), rounded(above), role=role, dash="dashed")]
    if exact or np.abs(above - certified).max() == 0:
        return [Line(label, rounded(at), rounded(certified), role=role)]
    ends = ((certified, "at least", "solid"), (above, "at most", "dashed"))
    join = f"{label}, " if label else ""
    return [
        Line(f"{join}{end}", rounded(at), rounded(share), role=role, dash=dash)
        for share, end, dash in ends
    ]


def over_training(log_times: FloatArray, own: FloatArray, others: FloatArray) -> Curves:
    r"""Return coefficients, shape (times, coefficients), over :math:`\eta t`: Theorems 4.5 and 4.7.

    A band from the smallest to the largest of the own ones, and the largest of the others. Times
    that a float cannot hold are shown by their logarithm.
    """
    huge = bool(log_times[-1] > _LARGEST_LOG)
    x = log_times / np.log(10) if huge else np.exp(log_times)
    lines = [Line.between("own centres: smallest to largest", x, own, "coarse")]
    if others.size:
        largest = rounded(np.abs(others).max(axis=1))
        label = "other centres: largest |λ|"
        lines.append(Line(label, rounded(x), largest, role="quiet", dash="dashed"))
    panel = Panel("Feature coefficients", "λ", lines)
    name, scale = ("log₁₀(ηt)", "linear") if huge else ("ηt", "log")
    return Curves("Feature coefficients", name, [panel], scale)


def radius_grid(*bounds: FloatArray) -> FloatArray:
    """Return radii from 0 to a little above the largest finite one."""
    finite = np.concatenate([b[np.isfinite(b)] for b in bounds])
    highest = 1.05 * float(finite.max()) if finite.size else 0.0
    return np.linspace(0, highest or 1.0, _RADII)
