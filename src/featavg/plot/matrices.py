"""Pictures of cosines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featavg.auditing.verdict import Audit
from featavg.data.law import Sample
from featavg.drawing.common import cosine_maps, lowest_cosine
from featavg.drawing.pictured import on_axes
from featavg.drawing.plane import divide
from featavg.drawing.views import Matrix, rounded
from featavg.errors import InputError, shortened
from featavg.measures.alignment import alignment as cosines_of
from featavg.measures.alignment import averaging_index, equivalent_alignment
from featavg.networks.base import TwoLayerNet

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def alignment(
    net: TwoLayerNet, sample: Sample, *, equivalent: bool = False, ax: Axes | None = None
) -> Axes:
    r"""Draw the cosine of each centre and each neuron, with the averaging index as the title.

    Paper: Figure 2. Averaging shows as blocks of :math:`1/\sqrt{|J_s|}`, decoupling as a diagonal.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network.
    sample : Sample
        The points whose centres are compared; usually those that it was trained on.
    equivalent : bool
        Whether to draw one weight for each cluster, as the paper does, see `equivalent_weights`,
        instead of every neuron.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, featavg as fa
    >>> rng = np.random.default_rng(0)
    >>> train = fa.MultiCluster(clusters=6, dim=1000).sample(300, rng=rng)
    >>> net = fa.BinaryNet.init(train, width=4, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
    >>> run = fa.descend(net, train, learning_rate=0.003, steps=100)
    >>> fa.plot.alignment(run.net, train).get_title()
    'Cosines of centres and neurons: averaging index 0.98'
    """
    index = averaging_index(net, sample)
    matrix = equivalent_alignment(net, sample) if equivalent else cosines_of(net, sample)
    columns = "weight" if equivalent else "neuron"
    title = f"Cosines of centres and {columns}s"
    title += "" if np.isnan(index) else f": averaging index {index:.2f}"
    panel = Matrix(title, [rounded(matrix)])
    return on_axes(cosine_maps(title, [panel], columns, low=lowest_cosine(matrix)), ax)


def geometry(data: Sample | Audit, *, ax: Axes | None = None) -> Axes:
    """Draw the cosines between the centres of clusters, with a line between classes.

    Paper: Assumption 3.2, which requires orthogonal centres, and Figure 10.

    Parameters
    ----------
    data : Sample or Audit
        The centres are those of the sample, or the means of the subclasses that an audit found,
        minus the mean of all points.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, featavg as fa
    >>> rng = np.random.default_rng(0)
    >>> law = fa.MultiCluster(clusters=8, dim=200, cosine=0.3)
    >>> fa.plot.geometry(law.sample(100, rng=rng)).get_title()
    'Cosines between the centres of 8 clusters'
    """
    if isinstance(data, Sample):
        axes = on_axes(data.view(), ax)
        divide(axes, np.sort(-data.law.signs))
    elif isinstance(data, Audit):
        axes = on_axes(data.cosines(), ax)
        divide(axes, data.geometry.class_of)
    else:
        raise InputError(f"data must be a Sample or an Audit; got {shortened(data)}.")
    return axes
