r"""How far a network is from a closed form, on the whole sphere and between certified bounds.

Paper: the distance of Theorem 4.6, :math:`\inf_C \sup_{\|x\|=\sqrt d} |C f_{FA}(x) - f(x)|`.

Without biases both functions are homogeneous, so that relative to the size
:math:`\sup_{\|x\|=\sqrt d} |f(x)|` the distance is the same on every sphere, and at most 1 because
C may be as small as you like. With unit weights :math:`\hat w_r` and :math:`c_r = |a_r| \|w_r\|`,

.. math:: f(x) = \sum_r s_r c_r\,\mathrm{relu}(\langle \hat w_r, x\rangle)^p, \qquad \|x\| = 1.

From below: any finite set of points bounds the supremum for every C at once, and the best C for it
is where two lines cross. The set grows by ascent from where that C leaves most (a cutting plane).
From above: sums of :math:`|\langle v_i, x\rangle|` are at most
:math:`(\sum_{i,j} |\langle v_i, v_j\rangle|)^{1/2}`, and sums of :math:`c_i\langle v_i, x\rangle^2`
at most the largest eigenvalue of :math:`\sum_i c_i v_i v_i^\top`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from featavg.arrays import FloatArray, IntArray, unit_rows
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import ReLU, ReLUPower
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.reference import side_sums

_ROUNDS = 4
_WORTH_GOING_ON = 1e-3
_ASCENT_STEPS = 60
_RANDOM_STARTS = 20


@dataclass(frozen=True)
class Distance:
    """Bounds of a distance, relative to the size of the network: 0 is equality, 1 the most.

    Attributes
    ----------
    lower, upper : float
        The distance is at least and at most this.
    """

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class _Neurons:
    """The function Σ s c relu(<v, x>)^p with unit rows v, in coordinates of a small span."""

    directions: FloatArray
    sizes: FloatArray
    signs: IntArray
    power: int

    def values(self, x: FloatArray) -> FloatArray:
        """Return the function at points x, shape (span, points)."""
        return (self.signs * self.sizes) @ ReLUPower(self.power).value(self.directions @ x)

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return its gradients, shape (span, points)."""
        slopes = ReLUPower(self.power).slope(self.directions @ x)
        return self.directions.T @ ((self.signs * self.sizes)[:, None] * slopes)

    def largest(self) -> float:
        """Return a bound of the largest value on the sphere.

        The two sides never help each other, so it is that of one side.
        """
        found = 0.0
        for sign in (1, -1):
            v, c = self.directions[self.signs == sign], self.sizes[self.signs == sign]
            if self.power == 1:
                bound = np.sqrt((np.outer(c, c) * np.maximum(v @ v.T, 0)).sum())
            else:
                bound = _largest_eigenvalue(v, c)
            found = max(found, float(bound))
        return found


def distance_to_averaging(net: TwoLayerNet, sample: Sample) -> Distance:
    r"""Return how far a network is from C times the feature-averaging network, for the best C.

    Paper: Theorem 4.6, with Definition 4.1; relative to the network's own size.

    The upper bound is sharp for neurons of power 1 that are parallel on each side; for higher
    powers it is 1 and only the lower bound says something.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> from featavg.networks import reference
    >>> train = MultiCluster(clusters=6, dim=60).sample(9, rng=np.random.default_rng(0))
    >>> far = distance_to_averaging(reference.averaging(train), train)
    >>> bool(far.upper < 1e-9), round(distance_to_averaging(_one_by_one(train), train).lower, 3)
    (True, 0.471)
    """
    f, g = _in_span(net, side_sums(sample), np.array([1, -1]), 1)
    return _bracket(f, g, _averaging_bound(f, g) if f.power == 1 else np.inf)


def distance_to_decoupled(net: TwoLayerNet, sample: Sample) -> Distance:
    r"""Return how far a network is from C times one neuron of its own power for each centre.

    Paper: none, an extension; what Min and Vidal conjecture for higher powers,
    :math:`F^{(p)}(x) = \sum_j s_j\,\mathrm{relu}(\langle\mu_j, x\rangle)^p`.

    Examples
    --------
    >>> from featavg import MultiCluster
    >>> train = MultiCluster(clusters=6, dim=60).sample(9, rng=np.random.default_rng(0))
    >>> bool(distance_to_decoupled(_one_by_one(train, power=3), train).upper < 1e-9)
    True
    """
    f, g = _in_span(net, sample.centers, sample.law.signs, _power(net))
    return _bracket(f, g, _decoupled_bound(f, g))


def _one_by_one(sample: Sample, power: int = 1) -> BinaryNet:
    """Return the network with one neuron for each centre."""
    activation = ReLUPower(power, normalized=True)
    outer = sample.law.signs.astype(np.float64)
    return BinaryNet(sample.centers, second_layer=outer, activation=activation)


def _power(net: TwoLayerNet) -> int:
    """Return p of a network of normalised neurons relu(z)^p, and refuse others."""
    activation = net.activation
    power = activation.power if isinstance(activation, ReLUPower) else 1
    if not isinstance(activation, ReLU | ReLUPower) or (power > 1 and not activation.normalized):
        raise InputError(
            "the distance needs a ReLU, or normalized powers of it, so that each neuron is "
            f"homogeneous of degree 1 in its weight; got {activation!r}."
        )
    if not net.has_one_output or net.biases.any():
        raise InputError(f"the distance needs one output and biases of zero; got {net!r}.")
    return power


def _in_span(
    net: TwoLayerNet, weights: FloatArray, signs: IntArray, power: int
) -> tuple[_Neurons, _Neurons]:
    """Return the network and the reference in the coordinates of the span of both."""
    own = _power(net)
    basis = np.linalg.qr(unit_rows(np.vstack([net.weights, weights]).astype(np.float64)).T)[0]
    outer = net.second_layer[0].astype(np.float64)
    sizes = np.abs(outer) * net.norms
    scale = sizes.max()
    if not scale > 0:
        raise InputError("the distance needs a network that is not zero everywhere.")
    heights = np.linalg.norm(weights, axis=1)
    f = _Neurons(unit_rows(net.weights) @ basis, sizes / scale, net.neuron_signs, own)
    return f, _Neurons(unit_rows(weights) @ basis, heights / heights.max(), signs, power)


def _bracket(f: _Neurons, g: _Neurons, upper: float) -> Distance:
    """Return the relative distance, given a bound of the absolute one from above."""
    size, distance = _from_below(f, g)
    most = max(f.largest(), size)
    return Distance(lower=distance / most, upper=float(min(1.0, max(upper, distance) / size)))


def _from_below(f: _Neurons, g: _Neurons) -> tuple[float, float]:
    """Return lower bounds of the size of f, and of its distance to all multiples of g."""
    x = _starts(f, g)
    highest = _ascend(f, g, 0.0, x)
    size = float(np.abs(f.values(highest)).max())
    points = np.hstack([x, highest])
    C, distance = _best_multiple(f.values(points), g.values(points))
    for _ in range(_ROUNDS):
        before = distance
        points = np.hstack([points, _ascend(f, g, C, x)])
        C, distance = _best_multiple(f.values(points), g.values(points))
        if distance <= (1 + _WORTH_GOING_ON) * before:
            break
    return size, distance


def _best_multiple(f: FloatArray, g: FloatArray) -> tuple[float, float]:
    """Return the C >= 0 with the smallest largest |f - C g|, and that, rounded down.

    The largest is the envelope of lines in C. Where a falling and a rising one of them cross, the
    envelope is nowhere lower; the two are exchanged until none is above the crossing.
    """
    a, b = np.r_[f, -f], np.r_[-g, g]
    falling, rising = int(a.argmax()), int(b.argmax())
    if b[falling] >= 0 or b[rising] <= 0:
        return 0.0, float(a.max())
    while True:
        C = float((a[falling] - a[rising]) / (b[rising] - b[falling]))
        crossing = float(a[falling] + b[falling] * C)
        above = a + b * C
        highest = int(above.argmax())
        if b[highest] == 0:  # a line that no C can lower
            return C, float(above[highest])
        if above[highest] <= crossing + 1e-12 * a.max():
            return C, max(0.0, crossing)
        falling, rising = (highest, rising) if b[highest] < 0 else (falling, highest)


def _starts(f: _Neurons, g: _Neurons) -> FloatArray:
    """Return points on the sphere: all directions and their opposites, sums of sides, random."""
    sums = [
        (part.sizes[part.signs == s] @ part.directions[part.signs == s])[None, :]
        for part in (f, g)
        for s in (1, -1)
    ]
    random = np.random.default_rng(0).standard_normal((_RANDOM_STARTS, f.directions.shape[1]))
    rows = np.vstack([f.directions, g.directions, *sums, sums[0] - sums[1], random])
    rows = unit_rows(rows[np.linalg.norm(rows, axis=1) > 0])
    return np.vstack([rows, -rows]).T


def _ascend(f: _Neurons, g: _Neurons, C: float, x: FloatArray) -> FloatArray:
    """Return, from each start, the best point of an ascent of |f - C g| on the sphere."""
    value = f.values(x) - C * g.values(x)
    best, highest = x, np.abs(value)
    for step in range(_ASCENT_STEPS):
        direction = np.sign(value) * (f.gradient(x) - C * g.gradient(x))
        direction -= x * (direction * x).sum(axis=0)
        length = np.linalg.norm(direction, axis=0)
        x = x + 0.5 * 0.93**step * direction / np.where(length > 0, length, 1)
        x = x / np.linalg.norm(x, axis=0)
        value = f.values(x) - C * g.values(x)
        better = np.abs(value) > highest
        best, highest = np.where(better, x, best), np.where(better, np.abs(value), highest)
    return best


def _averaging_bound(f: _Neurons, g: _Neurons) -> float:
    r"""Return a bound of the distance of ReLU neurons to multiples of one neuron a side.

    With shares :math:`\beta_r \ge 0` of the reference for each neuron,
    :math:`|f - C g| \le \sum_r |\langle c_r \hat w_r - \beta_r m_s, x\rangle|
    + \sum_s |C - \sum_r \beta_r| |\langle m_s, x\rangle|`.
    """
    w = f.sizes[:, None] * f.directions
    m = g.sizes[:, None] * g.directions
    own = m[np.where(f.signs == 1, 0, 1)]
    shares = np.maximum((w * own).sum(axis=1) / np.square(own).sum(axis=1), 0)
    rest = w - shares[:, None] * own
    totals = np.array([shares[f.signs == s].sum() for s in (1, -1)])

    def bound(C: float) -> float:
        return _largest_sum(np.vstack([rest, (C - totals)[:, None] * m]))

    return _smallest(bound, totals)


def _decoupled_bound(f: _Neurons, g: _Neurons) -> float:
    r"""Return a bound of the distance to multiples of one neuron of the same power a centre.

    Each neuron is compared with the nearest centre of its side, C with what each centre has. On
    the unit sphere :math:`|u_+^p - v_+^p| \le p |u - v|`, and for higher powers also
    :math:`\le \kappa |u - v| (u^2 + v^2)^{1/2}` with :math:`\kappa = p / \sqrt 2`, to be summed by
    the inequality of Cauchy and Schwarz.
    """
    cosines = np.where(f.signs[:, None] == g.signs, f.directions @ g.directions.T, -np.inf)
    centers = g.directions[nearest := cosines.argmax(axis=1)]
    apart = f.power * _largest_sum(f.sizes[:, None] * (f.directions - centers))
    if f.power > 1:
        both = np.vstack([f.directions, centers])
        squares = _largest_eigenvalue(both, np.tile(f.sizes, 2))
        gaps = _largest_eigenvalue(f.directions - centers, f.sizes)
        apart = min(apart, f.power / np.sqrt(2) * np.sqrt(squares * gaps))
    totals = np.bincount(nearest, weights=f.sizes, minlength=len(g.sizes)) / g.sizes

    def bound(C: float) -> float:
        left = np.abs(C - totals) * g.sizes
        if f.power == 1:
            return apart + _largest_sum(left[:, None] * g.directions)
        return apart + _largest_eigenvalue(g.directions, left)

    return _smallest(bound, totals)


def _smallest(bound: Callable[[float], float], totals: FloatArray) -> float:
    """Return the smallest bound over C: every C gives one."""
    low, high = float(totals.min()), float(totals.max())
    candidates = [bound(C) for C in (low, high, float(totals.mean()))]
    if high > low:
        candidates.append(float(minimize_scalar(bound, bounds=(low, high), method="bounded").fun))
    return min(candidates)


def _largest_sum(vectors: FloatArray) -> float:
    """Return a bound of Σ |<v, x>| on the sphere."""
    return float(np.sqrt(np.abs(vectors @ vectors.T).sum()))


def _largest_eigenvalue(vectors: FloatArray, weights: FloatArray) -> float:
    """Return a bound of Σ c <v, x>² on the sphere, for c >= 0."""
    if not len(vectors):
        return 0.0
    scaled = np.sqrt(weights)[:, None] * vectors
    return float(np.linalg.norm(scaled, 2) ** 2)
