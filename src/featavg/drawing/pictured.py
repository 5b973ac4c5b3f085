"""Results that have a picture: their method `plot`, and a small picture in a notebook."""

from __future__ import annotations

import base64
import html
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from featavg.drawing.views import View
from featavg.errors import InputError, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _SMALL = (6.2, 4.4), (4.6, 3.5)  # of pictures in inches: from `plot`, and in a notebook


class Pictured(ABC):
    """A result with a picture.

    A subclass says in `view` what there is to see, as a view of a single panel.
    """

    @abstractmethod
    def view(self) -> View:
        """Return what there is to see as plain data, see `featavg.drawing.views`."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it, and return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; axes of a new figure by default.
        """
        return on_axes(self.view(), ax)

    def _repr_html_(self) -> str:
        """Return a small picture above the text of `repr`, for notebooks."""
        from matplotlib.figure import Figure

        from featavg.drawing import draw
        from featavg.drawing.style import rendered, style

        with style():
            figure = Figure(figsize=_SMALL, layout="constrained")
            draw.onto(self.view(), [figure.subplots()])
            address = data_address("image/png", rendered(figure, "png", dpi=96))
        text = html.escape(repr(self))
        return (
            f'<figure style="margin: 0"><img src="{address}" alt="{text}" '
            f'style="max-width: 100%"><figcaption><code>{text}</code></figcaption></figure>'
        )


def on_axes(view: View, ax: Axes | None = None) -> Axes:
    """Draw a view of a single panel onto axes, or onto those of a new figure; return the axes."""
    from featavg.drawing import draw
    from featavg.drawing.style import style

    with style():
        axes = axes_or_new(ax)
        draw.onto(view, [axes])
    return axes


def axes_or_new(ax: Axes | None, size: tuple[float, float] = _SIZE) -> Axes:
    """Return axes that were given, or those of a new figure of pyplot."""
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    if ax is None:
        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise InputError(f"ax must be axes of Matplotlib; got {shortened(ax)}.")
    return ax


def data_address(kind: str, content: bytes) -> str:
    """Return the address of a picture that holds the picture itself."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
