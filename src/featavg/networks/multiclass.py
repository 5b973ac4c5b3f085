"""The fine-label learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import BoolArray, FloatArray, IntArray
from featavg.data.law import Sample
from featavg.errors import InputError
from featavg.networks.activation import Activation, ReLU
from featavg.networks.base import TwoLayerNet, check_parameters, plain_relus
from featavg.networks.binary import BinaryNet
from featavg.networks.loss import CrossEntropy, Loss, softmax
from featavg.networks.shallow import ShallowNet

READOUTS = ("probability", "argmax", "logit-sum")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MultiClassNet(TwoLayerNet):
    r"""The network with k groups of h neurons, read out as a binary classifier.

    Paper: Section 4.2.

    .. math:: f_j(x) = \frac1h \sum_{r \le h} \mathrm{relu}(\langle w_{j,r}, x\rangle),
              \qquad p = \mathrm{softmax}(f_1, \dots, f_k)

    trained by the cross-entropy of p on the cluster of each point. The binary score is
    :math:`\sum_{J_+} p_j - \sum_{J_-} p_j` for the readout "probability" (the paper's),
    :math:`\max_{J_+} f_j - \max_{J_-} f_j` for the readout "argmax", and
    :math:`\sum_{J_+} f_j - \sum_{J_-} f_j` for the readout "logit-sum" (an extension), which is
    that of a `BinaryNet`, see `to_binary`. The difference of log-sum-exps of the two sides is no
    further readout: it is the log-odds of the positive side, whose sign is that of "probability".

    Parameters
    ----------
    weights : array of shape (k·h, dim)
        The rows, grouped by class.
    classes : int
        k.
    positive : int or sequence of int, optional
        How many classes are positive (the first ones), or which; the first half by default.
    readout : {"probability", "argmax", "logit-sum"}
        How the binary decision is taken.
    biases : array of shape (k·h,), optional
        Biases, :math:`\mathrm{relu}(\langle w_{j,r}, x\rangle + b_{j,r})`, which are trained too.
        The paper's network has none, and that is the default; points of few coordinates, where a
        hyperplane through the origin separates little, need them.
    activation : Activation
        The function of the pre-activations; the ReLU by default.

    Examples
    --------
    >>> net = MultiClassNet(weights=np.eye(4), classes=4, positive=2)
    >>> x = [[2.0, 0.0, 1.0, 1.0]]
    >>> net.logits(x)
    array([[2., 0., 1., 1.]])
    >>> net.score(x).round(4), net.with_readout("argmax").score(x)
    (array([0.2136]), array([1.]))
    >>> net.with_readout("logit-sum").score(x)
    array([0.])
    """

    weights: FloatArray
    classes: int
    positive: tuple[int, ...]
    readout: str
    activation: Activation
    _biases: FloatArray | None

    def __init__(
        self,
        weights: ArrayLike,
        classes: int,
        positive: int | Sequence[int] | None = None,
        readout: str = "probability",
        biases: ArrayLike | None = None,
        *,
        activation: Activation = ReLU(),  # noqa: B008  it cannot change
    ) -> None:
        W, b = check_parameters(weights, biases, activation)
        classes = checks.count("classes", classes, minimum=2)
        if len(W) % classes:
            raise InputError(
                f"weights must have the same number of rows for each of the {classes} classes; "
                f"got {len(W)} rows."
            )
        for name, value in (
            ("weights", W),
            ("classes", classes),
            ("positive", checks.partition(positive, classes)),
            ("readout", checks.choice("readout", readout, READOUTS)),
            ("activation", activation),
            ("_biases", None if biases is None else b),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def init(
        cls,
        sample: Sample,
        *,
        width: int,
        weight_scale: float,
        rng: np.random.Generator,
        readout: str = "probability",
        bias_scale: float | None = None,
        activation: Activation = ReLU(),  # noqa: B008
    ) -> MultiClassNet:
        r"""Draw a network with `width` neurons for each cluster of a sample, or label group.

        Paper: Section 4.2. :math:`w_{j,r} \sim N(0, \sigma_w^2 I_d)` with
        :math:`\sigma_w` = `weight_scale`, :math:`h` = `width`. With `bias_scale` the network has
        biases, drawn as those of a `BinaryNet`.

        Examples
        --------
        >>> from featavg import MultiCluster
        >>> rng = np.random.default_rng(0)
        >>> train = MultiCluster(clusters=4, dim=50).sample(100, rng=rng)
        >>> MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
        MultiClassNet(4 classes of 1 neuron, 50 coordinates, probability readout)
        """
        width = checks.count("width", width)
        weight_scale = checks.scale("weight_scale", weight_scale, zero=True)
        signs = sample.label_signs
        classes = len(signs)
        with np.errstate(over="ignore"):  # what overflows is refused below
            weights = weight_scale * sample.gaussian(classes * width, rng=rng)
        biases = None
        if bias_scale is not None:
            bias_scale = checks.scale("bias_scale", bias_scale, zero=True)
            biases = bias_scale * rng.standard_normal(classes * width)
        positive = np.flatnonzero(signs == 1).tolist()
        net = cls(weights, classes, positive, readout, biases, activation=activation)
        return net.in_span_if(sample.in_span)

    def __repr__(self) -> str:
        neurons = "1 neuron" if self.width == 1 else f"{self.width} neurons"
        other = "" if self.activation == ReLU() else f", {self.activation!r}"
        return (
            f"MultiClassNet({self.classes} classes of {neurons}, {self.dim} coordinates, "
            f"{self.readout} readout{other})"
        )

    @property
    def width(self) -> int:
        """The number h of neurons of each class."""
        return len(self.weights) // self.classes

    @property
    def has_biases(self) -> bool:
        """Whether biases were given; the paper's network has none."""
        return self._biases is not None

    @property
    def biases(self) -> FloatArray:
        """The biases, shape (k·h,); zeros where the network has none."""
        return (
            np.zeros(len(self.weights), self.weights.dtype)
            if self._biases is None
            else self._biases
        )

    @property
    def second_layer(self) -> FloatArray:
        """The fixed layer: 1/h where a neuron belongs to a class, shape (k, k·h)."""
        blocks = np.repeat(np.eye(self.classes), self.width, axis=1) / self.width
        return blocks.astype(self.weights.dtype)

    @property
    def output_signs(self) -> IntArray:
        """The side of each class, +1 or -1, shape (k,)."""
        return checks.signs_of_partition(self.positive, self.classes)

    @property
    def neuron_signs(self) -> IntArray:
        """The side of each neuron's class, shape (k·h,)."""
        return np.repeat(self.output_signs, self.width)

    @property
    def default_loss(self) -> Loss:
        """The cross-entropy."""
        return CrossEntropy()

    def own_clusters(self, sample: Sample) -> BoolArray:
        """Return which clusters each neuron is to learn: those of its class."""
        labels = len(sample.label_signs)
        if labels != self.classes:
            what = "clusters" if sample.grouping is None else "label groups"
            raise InputError(
                f"net and sample must have the same number of classes and {what}; got "
                f"{self.classes} and {labels}."
            )
        members = np.arange(labels)[:, None] == sample.label_of_cluster[None, :]
        return np.repeat(members, self.width, axis=0)

    def with_parameters(
        self, weights: FloatArray, biases: FloatArray, second_layer: FloatArray | None = None
    ) -> MultiClassNet:
        """Return the network with other weights; `biases` must be zero where it has none."""
        if not self.has_biases and np.any(biases):
            raise InputError("this MultiClassNet has no biases; got some that are not zero.")
        if second_layer is not None:
            raise InputError("the second layer of a MultiClassNet is fixed; got another one.")
        return self._replaced(weights=weights, biases=biases if self.has_biases else None)

    def after_affine(self, factors: FloatArray, offset: FloatArray) -> MultiClassNet:
        """Return the network, with biases, that takes x where this one takes factors * x + offset.

        It is in double precision.
        """
        weights, biases = self._first_layer_after(factors, offset)
        return self._replaced(weights=weights, biases=biases)

    def with_readout(self, readout: str) -> MultiClassNet:
        """Return the network with another readout."""
        return self._replaced(readout=readout)

    def with_positive(self, positive: int | Sequence[int]) -> MultiClassNet:
        """Return the network with other classes on the positive side."""
        return self._replaced(positive=positive)

    def of_classes(self, classes: ArrayLike) -> MultiClassNet:
        """Return the network of some of the classes, of which the first half is positive."""
        chosen = np.asarray(classes)
        rows = (chosen[:, None] * self.width + np.arange(self.width)).ravel()
        return self._replaced(
            weights=self.weights[rows],
            classes=len(chosen),
            positive=None,
            biases=None if self._biases is None else self._biases[rows],
        )

    def _replaced(self, **changes: Any) -> MultiClassNet:
        fields: dict[str, Any] = {
            "weights": self.weights,
            "classes": self.classes,
            "positive": self.positive,
            "readout": self.readout,
            "biases": self._biases,
            "activation": self.activation,
        }
        return MultiClassNet(**(fields | changes)).in_span_if(self.in_span)

    def logits(self, x: ArrayLike) -> FloatArray:
        """Return the class outputs f_j(x), shape (points, k)."""
        return self.outputs(x).T

    def probabilities(self, x: ArrayLike) -> FloatArray:
        """Return the class probabilities p_j(x), shape (points, k)."""
        return softmax(self.outputs(x)).T

    def score(self, x: ArrayLike) -> FloatArray:
        """Return the binary score of each point, by the readout; its sign is the decision."""
        decision = self.decision(self.outputs(x))
        # With D the log-odds of the positive side, p_+ - p_- = tanh(D/2), without cancellation.
        return np.tanh(decision / 2) if self.readout == "probability" else decision

    def decision(self, outputs: FloatArray) -> FloatArray:
        """Return the log-odds of the positive side, or the difference of maxima, or of sums."""
        positive, negative = self._sides(outputs)
        if self.readout == "argmax":
            return positive.max(axis=0) - negative.max(axis=0)
        if self.readout == "logit-sum":
            return positive.sum(axis=0) - negative.sum(axis=0)
        prior = np.log(len(positive) / len(negative))
        return _log_mean_exp(positive) - _log_mean_exp(negative) + prior.astype(outputs.dtype)

    def decision_gradient(self, outputs: FloatArray) -> FloatArray:
        """Return the derivative of the decision by each class output, shape (k, points)."""
        gradient = np.zeros_like(outputs)
        for sign, side in zip((1, -1), self._sides(outputs), strict=True):
            if self.readout == "argmax":
                share = np.zeros_like(side)
                share[side.argmax(axis=0), np.arange(side.shape[1])] = 1
            elif self.readout == "logit-sum":
                share = np.ones_like(side)
            else:
                share = softmax(side)
            gradient[self.output_signs == sign] = sign * share
        return gradient

    def to_binary(self) -> BinaryNet:
        """Return the `BinaryNet` of the same neurons, which decides as the readout "logit-sum".

        Paper: none, an extension. Its score is the difference of the sides' sums of outputs.

        Examples
        --------
        >>> net = MultiClassNet(weights=np.eye(4), classes=4, readout="logit-sum")
        >>> net.to_binary().score([[2.0, 0.0, 1.0, 0.5]])
        array([0.5])
        """
        if self.readout != "logit-sum":
            raise InputError(
                "a MultiClassNet is a BinaryNet only with the readout 'logit-sum'; got the readout "
                f"{self.readout!r}."
            )
        return BinaryNet(
            self.weights,
            self._biases,
            second_layer=self.output_signs @ self.second_layer,
            activation=self.activation,
            train_biases=self.has_biases,
        ).in_span_if(self.in_span)

    def to_shallow(self) -> ShallowNet:
        """Return the network whose largest output decides; not for the probability readout."""
        if self.readout == "logit-sum":
            return self.to_binary().to_shallow()
        if self.readout != "argmax":
            raise InputError(
                "the largest output of a MultiClassNet decides only with the argmax readout, and "
                f"the sum of outputs with 'logit-sum'; got the readout {self.readout!r}."
            )
        order = np.argsort(self.output_signs, kind="stable")  # of equal outputs -1 decides
        return plain_relus(self, self.second_layer[order], self.output_signs[order])

    def _sides(self, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        signs = self.output_signs
        return outputs[signs == 1], outputs[signs == -1]


def _log_mean_exp(outputs: FloatArray) -> FloatArray:
    """Return log(mean(exp(f))) over the classes, exact for outputs near 0 as well as for large."""
    largest = outputs.max(axis=0)
    return largest + np.log1p(np.expm1(outputs - largest).mean(axis=0))
