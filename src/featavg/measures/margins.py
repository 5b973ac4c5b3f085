"""Margin maximisation: normalised and smoothed margins, and how fast loss and norm move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from featavg.arrays import FloatArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.base import TwoLayerNet
from featavg.networks.loss import Loss
from featavg.training.loss_check import check_margin_of
from featavg.training.state import check_pair
from featavg.training.trajectory import Trajectory

# log(2), the loss of a point on the boundary: below it in total, every point is fitted.
_LOG_FITTED = float(np.log(np.log(2)))


def normalized_margin(net: TwoLayerNet, sample: Sample, loss: Loss | None = None) -> float:
    r"""Return the normalised margin of a network on a sample.

    Paper: none, an extension; the quantity of Lyu and Li (2020).

    .. math:: \gamma(\theta) = \frac{\min_i q_i(\theta)}{\|\theta\|^L}

    with :math:`q_i = y_i f(x_i)`, or for a multi-class network the output of the own class minus
    the largest other one, and :math:`\theta` what is trained: the first layer, and the biases and
    the second layer where they are. Outputs are homogeneous of degree L in :math:`\theta`; for the
    paper's networks L = 1.

    Parameters
    ----------
    net : BinaryNet or MultiClassNet
        The network; of an activation that is homogeneous.
    sample : Sample
        The points.
    loss : Loss, optional
        Whose labels count; the network's own by default.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> train = MultiCluster(clusters=4, dim=100, noise=0).sample(9, rng=np.random.default_rng(0))
    >>> net = BinaryNet([train.centers[:2].sum(axis=0), train.centers[2:].sum(axis=0)])
    >>> round(normalized_margin(net, train), 6)               # 100 / 20
    5.0
    """
    check_pair(net, sample)
    loss = net.default_loss if loss is None else loss
    margins = loss.margins(net.outputs(sample.x), loss.targets(net.output_count, sample))
    return float(margins.min() / _norm(net) ** _degree(net))


def smoothed_margin(net: TwoLayerNet, sample: Sample, loss: Loss | None = None) -> float:
    r"""Return the smoothed normalised margin, which training by gradient flow never decreases.

    Paper: none, an extension; the quantity of Lyu and Li (2020) for the logistic loss.

    .. math:: \tilde\gamma(\theta) = \frac{\ell^{-1}(\mathcal L)}{\|\theta\|^L}, \qquad
              \mathcal L = \sum_i \ell(q_i), \qquad \ell(q) = \log(1 + e^{-q}), \qquad
              \ell^{-1}(u) = -\log(e^u - 1)

    The loss is the sum over the points, not the mean; another `loss` must be a function of the
    margin too. L is the degree, as for `normalized_margin`. For a multi-class network :math:`q_i`
    is the soft margin :math:`-\log \sum_{j \ne y} e^{f_j - f_y}`. With N points and the margin
    :math:`q_{\min}` of the worst one,

    .. math:: -\log\big((1 + e^{-q_{\min}})^N - 1\big)
              \;\le\; \tilde\gamma\,\|\theta\| \;\le\; q_{\min}

    (N times the number of other classes for a multi-class network); once the loss is small, the
    left side is :math:`q_{\min} - \log N`. It is all computed from logarithms, so a loss of
    :math:`10^{-500}` is as good as any.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster
    >>> train = MultiCluster(clusters=4, dim=100, noise=0).sample(9, rng=np.random.default_rng(0))
    >>> net = BinaryNet([train.centers[:2].sum(axis=0), train.centers[2:].sum(axis=0)])
    >>> round(smoothed_margin(net, train), 6)                 # (100 - log 9) / 20
    4.890139
    """
    check_pair(net, sample)
    loss = net.default_loss if loss is None else loss
    check_margin_of(loss, net, sample)
    log_losses = loss.log_losses(net.outputs(sample.x), loss.targets(net.output_count, sample))
    margin = loss.margin_of(logsumexp(log_losses.astype(np.float64)))
    return float(margin / _norm(net) ** _degree(net))


@dataclass(frozen=True, eq=False, repr=False)
class MarginHistory:
    r"""The margins of a network along its training.

    Paper: none, an extension; see `normalized_margin` and `smoothed_margin`.

    Attributes
    ----------
    log_times : array of shape (times,)
        The natural logarithms of the recorded times :math:`\eta t`.
    log_loss : array of shape (times,)
        The natural logarithm of the *sum* of the losses.
    norm : array of shape (times,)
        :math:`\|\theta\|`.
    normalized, smoothed : array of shape (times,)
        :math:`\gamma` and :math:`\tilde\gamma`.
    degree : int
        L, in which outputs are homogeneous in :math:`\theta`.

    Examples
    --------
    >>> from featavg import BinaryNet, MultiCluster, fast_forward
    >>> rng = np.random.default_rng(0)
    >>> train = MultiCluster(clusters=2, dim=10**6).sample(40, rng=rng, coordinates="span")
    >>> net = BinaryNet.init(train, width=2, weight_scale=1e-8, bias_scale=1e-8, rng=rng)
    >>> run = fast_forward(net, train, learning_rate=1e-12, steps=10**112, tolerance=0.5)
    >>> history = MarginHistory.of(run)
    >>> history
    MarginHistory(50 times, fitted from 5 on, smoothed margin 222.9 -> 504.8)
    >>> history.largest_decrease
    0.0
    >>> rates = history.rates()
    >>> round(rates.loss, 2)                                  # the loss is of order 1/t
    -1.0
    """

    log_times: FloatArray
    log_loss: FloatArray
    norm: FloatArray
    normalized: FloatArray
    smoothed: FloatArray
    degree: int = 1

    @classmethod
    def of(cls, run: Trajectory) -> MarginHistory:
        """Return the margins at every recorded time of a trajectory."""
        degree = _degree(run.net)
        check_margin_of(run.loss_function, run.net, run.sample)
        norm = np.array([_norm(run.net_at(index)) for index in range(len(run.log_times))])
        log_loss = run.log_loss + np.log(len(run.sample))
        with np.errstate(divide="ignore", invalid="ignore"):  # a network of zeros has no margin
            normalized = run.margins.min(axis=1) / norm**degree
            smoothed = run.loss_function.margin_of(log_loss) / norm**degree
        return cls(run.log_times, log_loss, norm, normalized, smoothed, degree)

    def __repr__(self) -> str:
        fitted = self.fitted
        if fitted == len(self.log_times):
            return f"MarginHistory({len(self.log_times)} times, not fitted)"
        return (
            f"MarginHistory({len(self.log_times)} times, fitted from {fitted} on, smoothed margin "
            f"{self.smoothed[fitted]:.4g} -> {self.smoothed[-1]:.4g})"
        )

    @property
    def fitted(self) -> int:
        """The first index from which the sum of the losses stays below log 2, or their number."""
        above = np.flatnonzero(~(self.log_loss < _LOG_FITTED))
        return int(above[-1]) + 1 if len(above) else 0

    @property
    def largest_decrease(self) -> float:
        """The largest relative decrease of the smoothed margin from one time to the next, or 0.

        Only from `fitted` on: before, the theorem says nothing.
        """
        values = self.smoothed[self.fitted :]
        return float((1 - values[1:] / values[:-1]).max(initial=0))

    def rates(self, share: float = 0.5) -> Rates:
        r"""Fit the rates of loss and norm over the last `share` of log-time since the fit.

        Paper: none, an extension. For outputs of degree L, Lyu and Li (2020) prove
        :math:`\mathcal L = \Theta(1/(t (\log t)^{2 - 2/L}))` and
        :math:`\|\theta\|^L = \Theta(\log t)`, which is what is fitted.
        """
        if not 0 < share <= 1:
            raise InputError(f"share must be above 0 and at most 1; got {share!r}.")
        fitted = self.fitted
        log_times = self.log_times[fitted:]
        if len(log_times):
            late = log_times >= log_times[-1] - share * (log_times[-1] - log_times[0])
        if not len(log_times) or late.sum() < 3:
            raise InputError("rates need at least 3 recorded times after every point is fitted.")
        x = log_times[late]
        loss, _ = _line(x, self.log_loss[fitted:][late])
        norm, deviation = _line(x, self.norm[fitted:][late] ** self.degree)
        return Rates(loss, norm, deviation)


@dataclass(frozen=True)
class Rates:
    r"""How loss and norm move with log-time, late in training.

    Paper: none, an extension; see `MarginHistory.rates`.

    Attributes
    ----------
    loss : float
        The slope of :math:`\log \mathcal L` in :math:`\log t`; -1 for a loss of order 1/t.
    norm : float
        The slope of :math:`\|\theta\|^L` in :math:`\log t`; :math:`1/\gamma` in the limit for
        L = 1.
    norm_deviation : float
        The largest distance of the norm from the fitted line, relative to how much it grew.

    Examples
    --------
    >>> times = np.linspace(1, 9, 5)
    >>> rates = MarginHistory(times, -2 - times, 3 * times, 1 / times, 1 / times).rates()
    >>> round(rates.loss, 6), round(rates.norm, 6), round(rates.norm_deviation, 6)
    (-1.0, 3.0, 0.0)
    """

    loss: float
    norm: float
    norm_deviation: float


def _degree(net: TwoLayerNet) -> int:
    """Return the degree of homogeneity, and refuse a network without one."""
    if net.degree is None:
        raise InputError(
            "margins need outputs that are homogeneous in what is trained, or no scale of them is "
            f"comparable; got {net!r} with the activation {net.activation!r}."
        )
    return net.degree


def _norm(net: TwoLayerNet) -> float:
    """Return the norm of what is trained, which is scaled first so that nothing overflows."""
    parameters = [net.weights.ravel()]
    parameters += [net.biases] if net.has_biases else []
    parameters += [net.second_layer.ravel()] if net.trains_second_layer else []
    theta = np.concatenate(parameters).astype(np.float64)
    largest = float(np.abs(theta).max())
    return largest * float(np.linalg.norm(theta / largest)) if largest > 0 else 0.0


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Return the slope of the fitted line, and the largest distance relative to the range of y."""
    slope, start = np.polyfit(x, y, 1)
    return float(slope), float(np.abs(y - (start + slope * x)).max() / np.ptp(y))
