r"""The radius of decoupled features by each readout: the readout matters as much as the features.

Paper: none, an extension; its Theorem 4.7 is about the readout "probability". A decoupled network
has the outputs :math:`f_j(x) = \mathrm{relu}(\lambda \langle\mu_j, x\rangle / \alpha d)`, so that a
centre has the output :math:`\lambda` in its own class and 0 in all others. Radii are in units of
:math:`\alpha\sqrt d`. The page "The granularity law" of the documentation has the proofs.
"""

from __future__ import annotations

import numpy as np

from featavg import checks

_GRID = 4001


def argmax_radius() -> float:
    r"""Return the radius of the readout "argmax", :math:`\sqrt{1/2}`: one class has to overtake.

    Examples
    --------
    >>> round(argmax_radius(), 4)
    0.7071
    """
    return float(np.sqrt(0.5))


def logit_sum_radius(own: int, opposing: int, share: float = 0.0) -> float:
    r"""Return the radius of the readout "logit-sum".

    It is :math:`1/\sqrt{1 + M}` with M opposing clusters, because all of them can be raised at
    once. A trained weight also has the coefficient :math:`-\varepsilon` on each foreign centre;
    then all M have to be raised from below zero, and with :math:`s = \varepsilon/\lambda` and p own
    clusters the radius is

    .. math:: \frac{1 + M s}{\sqrt{(1 + M s)^2 + M (1 - (M - 2) s)^2 + (p - 1) (M - 1)^2 s^2}}.

    Parameters
    ----------
    own, opposing : int
        p and M.
    share : float
        s.

    Examples
    --------
    >>> round(logit_sum_radius(5, 5), 4), round(logit_sum_radius(5, 5, share=0.01), 4)
    (0.4082, 0.4355)
    """
    p, m = checks.count("own", own), checks.count("opposing", opposing)
    s = checks.scale("share", share, zero=True)
    lead = 1 + m * s
    squares = lead**2 + m * (1 - (m - 2) * s) ** 2 + (p - 1) * ((m - 1) * s) ** 2
    return float(lead / np.sqrt(squares))


def probability_radius(scale: float, own: int, opposing: int) -> float:
    r"""Return the radius of the readout "probability" at the output :math:`\lambda` = `scale`.

    The attack lowers the own output to :math:`\lambda(1 - a)` and raises t opposing ones to
    :math:`\lambda b`; it succeeds at :math:`e^{\lambda(1-a)} + p - 1 = t e^{\lambda b} + M - t`
    and has the length :math:`\sqrt{a^2 + t b^2}`, the smallest of which counts. It goes from that
    of "logit-sum" for small outputs to that of "argmax" for large ones.

    Examples
    --------
    >>> [round(probability_radius(scale, 5, 5), 3) for scale in (0.01, 1, 100)]
    [0.409, 0.51, 0.707]
    """
    lam = checks.scale("scale", scale)
    p, m = checks.count("own", own), checks.count("opposing", opposing)
    most = max(1.0, float(np.logaddexp(lam, np.log(p))) / lam)  # of one class alone, a = 0
    b = np.concatenate([np.linspace(0, 1, _GRID), np.geomspace(1, most, _GRID)])[:, None]
    t = np.arange(1, m + 1)[None, :]
    # λ(1 - a) is the logarithm of t e^(λb) (1 + c), and at least 0 because outputs are
    c = (m - t - p + 1) / t * np.exp(-lam * b)
    own_output = lam * b + np.log(t) + np.log1p(np.maximum(c, -1 + 1e-15))
    a = np.clip(1 - own_output / lam, 0, 1)
    lengths = np.where(own_output >= -1e-12, np.hypot(a, np.sqrt(t) * b), np.inf)
    return float(lengths.min())
