"""Heads: networks as classifiers of coarse classes, with certified radii."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp, softmax

from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.estimators.scaling import Scaling
from featavg.networks.activation import ReLU
from featavg.networks.base import TwoLayerNet, plain_relus
from featavg.networks.multiclass import MultiClassNet
from featavg.networks.shallow import ShallowNet
from featavg.robustness.certify import exact_radii
from featavg.robustness.radii import Radii

MAX_NODES = 10_000
"""When a search gives up on a point unless told otherwise; the bounds of its radius then differ."""

_QUICK_NODES = 200
"""When a search for a lower bound gives up: what is proved until then is one."""


class CertifiedHead(Protocol):
    """A classifier of scaled points with certified radii, for `CertifiedClassifier`.

    Classes are numbers from 0; `Head` says what the methods return.
    """

    @property
    def classes(self) -> int:
        """The number of classes."""

    @property
    def readout(self) -> str:
        """How a class is read out; unless it is "probability" there is a `to_shallow`."""

    def decision(self, x: FloatArray) -> FloatArray:
        """Return one number for each point of two classes, else one for each point and class."""

    def predict(self, x: FloatArray) -> IntArray:
        """Return the class of each point."""

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Return the probability of each class, shape (points, classes)."""

    def radii(self, x: FloatArray, classes: IntArray, **search: Any) -> Radii:
        """Return certified radii of points of these classes; 0 for a misclassified point."""

    def lower_radii(self, x: FloatArray, classes: IntArray) -> FloatArray:
        """Return certified lower bounds of `radii` in less time."""

    def to_shallow(self, labels: ArrayLike | None = None) -> ShallowNet:
        """Return the classifier as one network whose largest output decides."""

    def after(self, scaling: Scaling) -> CertifiedHead:
        """Return the same classifier of points that are not scaled yet."""


@dataclass(frozen=True, eq=False)
class Head:
    r"""A network and the class of each of its groups of neurons.

    Paper: Section 3.2 (a `BinaryNet` for two classes) and Section 4.2 (a `MultiClassNet` whose
    classes are subclasses); more than two coarse classes are an extension.

    With :math:`f_j` the outputs of the groups, class c has the value

    .. math:: D_c = \max_{j \in c} f_j \quad\text{(argmax)}, \qquad
              D_c = \log \sum_{j \in c} e^{f_j} \quad\text{(probability)}, \qquad
              D_c = \sum_{j \in c} f_j \quad\text{(logit-sum)}

    and the largest decides. The probabilities are the softmax of these values. Of two classes the
    second wins where :math:`D_1 - D_0 > 0`; the output of a `BinaryNet` is this difference.

    Attributes
    ----------
    net : BinaryNet or MultiClassNet
        The network; the positive side of a `BinaryNet` is class 1.
    class_of : array of shape (groups,)
        The class, from 0, of each group.
    """

    net: TwoLayerNet
    class_of: IntArray

    @property
    def classes(self) -> int:
        """The number of coarse classes."""
        return int(self.class_of.max()) + 1

    @property
    def readout(self) -> str:
        """How a class is read out; where each class has one output there is only "argmax"."""
        return "argmax" if self.net.has_one_output else self.net.readout

    @property
    def neuron_classes(self) -> IntArray:
        """The class of each neuron, shape (neurons,)."""
        if self.net.has_one_output:
            return np.where(self.net.neuron_signs > 0, 1, 0)
        return self.class_of[self.net.second_layer.argmax(axis=0)]

    def with_net(self, net: TwoLayerNet) -> Head:
        """Return the head with another network of the same shape, in double precision."""
        weights, biases = net.weights.astype(np.float64), net.biases.astype(np.float64)
        return replace(self, net=net.with_parameters(weights, biases))

    def after(self, scaling: Scaling) -> Head:
        r"""Return the same classifier of points that are not scaled yet.

        The scaling is folded into the first layer: :math:`W s (x - m) + b`. So radii are in the
        units of these points, also where each coordinate has a factor of its own.
        """
        return replace(self, net=self.net.after_affine(*scaling.affine))

    def decision(self, x: FloatArray) -> FloatArray:
        """Return D_1 - D_0 of two classes, shape (points,), or all D, shape (points, classes)."""
        outputs = self.net.outputs(x)
        if self.net.has_one_output:
            return self.net.decision(outputs)
        values = self._values(outputs)
        return values[1] - values[0] if len(values) == 2 else values.T

    def _values(self, outputs: FloatArray) -> FloatArray:
        value: Any = {"argmax": np.max, "logit-sum": np.sum, "probability": logsumexp}[self.readout]
        members = (outputs[self.class_of == c] for c in range(self.classes))
        return np.stack([value(member, axis=0) for member in members])

    def predict(self, x: FloatArray) -> IntArray:
        """Return the class of each point."""
        decision = self.decision(x)
        return decision.argmax(axis=1) if decision.ndim == 2 else (decision > 0).astype(np.int64)

    def probabilities(self, x: FloatArray) -> FloatArray:
        """Return the probability of each class, shape (points, classes)."""
        decision = self.decision(x)
        if decision.ndim == 1:
            return np.column_stack([expit(-decision), expit(decision)])
        return softmax(decision, axis=1)

    def to_shallow(self, labels: ArrayLike | None = None) -> ShallowNet:
        """Return the classifier as one network whose largest output decides.

        Only where there is one: not for the probability readout.

        Parameters
        ----------
        labels : array of shape (classes,), optional
            The labels of the classes; by default their numbers.
        """
        if self.readout == "probability":
            raise InputError(
                "the class is that of the largest output only with the argmax readout, and of the "
                f"largest sum with 'logit-sum'; got the readout {self.readout!r}."
            )
        names = np.arange(self.classes) if labels is None else np.asarray(labels)
        if self.net.has_one_output:  # the score of class 1 against class 0
            return plain_relus(self.net, self.net.second_layer, names)
        if self.readout == "logit-sum":
            members = np.arange(self.classes)[:, None] == self.class_of[None, :]
            return plain_relus(self.net, members @ self.net.second_layer, names)
        order = np.argsort(self.class_of, kind="stable")  # of equal outputs the first class decides
        return plain_relus(self.net, self.net.second_layer[order], names[self.class_of[order]])

    def radii(self, x: FloatArray, classes: IntArray, **search: Any) -> Radii:
        """Return certified radii: no smaller perturbation takes a point out of its given class.

        They are certified brackets for the probability readout and exact for others, unless a
        search reaches its limits; 0 where the point is misclassified. `search` has options of
        `featavg.exact_radii`; by default there are fewer nodes, no certificates, and one process.
        """
        options: dict[str, Any] = {"max_nodes": MAX_NODES, "certificates": False, "jobs": 1}
        options |= search
        if self.readout != "probability":
            return exact_radii(self.to_shallow(), x, classes, **options)
        lower, upper = np.full(len(x), np.inf), np.full(len(x), np.inf)
        perturbations, turns = np.zeros_like(x), np.ones(len(x), dtype=bool)
        for c in np.unique(classes):
            own = np.flatnonzero(classes == c)
            for net, sign in self.contests(int(c)):
                found = exact_radii(net, x[own], np.full(len(own), sign), **options)
                lower[own] = np.minimum(lower[own], found.lower)
                nearer = found.upper < upper[own]
                at = own[nearer]
                upper[at], turns[at] = found.upper[nearer], found.turns[nearer]
                perturbations[at] = found.perturbations[nearer]
        return Radii(lower, upper, perturbations, "l2", turns)

    @property
    def has_closed_bound(self) -> bool:
        """Whether `lower_radii` has a closed form: one neuron for each group, and "argmax"."""
        one_neuron_a_group = len(self.net.weights) == len(self.net.second_layer)
        return one_neuron_a_group and self.readout == "argmax" and self.net.activation == ReLU()

    def lower_radii(self, x: FloatArray, classes: IntArray, **search: Any) -> FloatArray:
        r"""Return lower bounds of `radii` in less time.

        With one neuron for each group and the argmax readout, a point leaves its class only where
        some opposing pre-activation :math:`u_l` or 0 reaches every own :math:`u_j`, so

        .. math:: \min_l \max_j \min\Big(\frac{z_j - z_l}{\|w_j - w_l\|},
                  \frac{z_j}{\|w_j\|}\Big)

        is a lower bound, and a tight one. Otherwise the result is that of `radii` with fewer nodes
        of the search.
        """
        net = self.net
        if not self.has_closed_bound:
            return self.radii(x, classes, **{"max_nodes": _QUICK_NODES} | search).lower
        z = net.preactivations(x)
        between = np.linalg.norm(net.weights[:, None] - net.weights[None], axis=2)
        radii = np.zeros(len(x))
        for c in np.unique(classes):
            at = classes == c
            own, other = self.class_of == c, self.class_of != c
            ahead = z[own][:, None, at] - z[other][None][:, :, at]
            apart = _nonzero(between[np.ix_(own, other)])
            to_silence = z[own][:, at] / _nonzero(net.norms[own])[:, None]
            reach = np.minimum(ahead / apart[:, :, None], to_silence[:, None])
            radii[at] = np.maximum(reach.max(axis=0).min(axis=0), 0)
        return radii

    def contests(self, c: int) -> list[tuple[MultiClassNet, int]]:
        """Return binary networks and the label of class c; c wins where it wins all of them.

        There is one for each other class, since a class may win with a probability below 1/2. The
        positive side, which loses where both are equal, is that of the later class.
        """
        net = self.net
        if not isinstance(net, MultiClassNet):
            raise InputError(f"contests of classes need a MultiClassNet; got {net!r}.")
        found = []
        for other in set(range(self.classes)) - {c}:
            groups = np.flatnonzero(np.isin(self.class_of, (c, other)))
            later = np.flatnonzero(self.class_of[groups] == max(c, other))
            pair = net.of_classes(groups).with_positive(later.tolist())
            found.append((pair, 1 if c > other else -1))
        return found


def _nonzero(norms: FloatArray) -> FloatArray:
    """Return norms with 0 replaced by the smallest positive number, to divide by."""
    return np.maximum(norms, np.finfo(np.float64).tiny)
