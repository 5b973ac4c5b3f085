"""Pictures of results: one function for each, drawn as the experiments and the report draw them.

Each function draws onto Matplotlib's axes `ax`, or onto those of a new figure, and returns them.
Results have the same pictures as a method `plot`, and show a small one in a notebook.
"""

from featavg.plot.around import boundary
from featavg.plot.matrices import alignment, geometry
from featavg.plot.paths import coefficients, frontier, radii, robust_curve

__all__ = [
    "alignment",
    "boundary",
    "coefficients",
    "frontier",
    "geometry",
    "radii",
    "robust_curve",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
