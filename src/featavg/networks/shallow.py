"""Any network of one hidden layer, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featavg import checks
from featavg.arrays import FloatArray, IntArray, frozen
from featavg.drawing.common import mutual_cosines
from featavg.drawing.pictured import Pictured
from featavg.drawing.views import HeatMaps
from featavg.errors import InputError
from featavg.networks.activation import Activation, ReLU, check_activation
from featavg.networks.frame import Framed


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ShallowNet(Framed, Pictured):
    r"""A network of one hidden layer whose largest output decides.

    .. math:: f(x) = A\,\varphi(W x + b) + S x + c, \qquad
              \mathrm{label}(x) = \mathrm{labels}[\arg\max_j f_j(x)]

    Paper: none, an extension. The second layer is any matrix; each output has a label, and several
    outputs may have the same. Of equal outputs the first one decides, as with `numpy.argmax`. One
    row of A is a score against 0: the second label where it is above 0, else the first. Without
    neurons (W of shape (0, coordinates)) it is a linear classifier.

    Parameters
    ----------
    W : array of shape (neurons, coordinates)
        The first layer.
    b : array of shape (neurons,)
        Its biases.
    A : array of shape (outputs, neurons)
        The second layer.
    c : array of shape (outputs,)
        Its biases.
    activation : Activation
        :math:`\varphi`.
    linear : array of shape (outputs, coordinates), optional
        S, a linear map past the hidden layer.
    labels : array of shape (outputs,), optional
        What each output stands for, by default its number; two of them for one row of A.

    Examples
    --------
    >>> net = ShallowNet([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [[1.0, -1.0]], [0.5])
    >>> net
    ShallowNet(2 neurons, 2 coordinates, 2 outputs)
    >>> net.predict([[3.0, 1.0], [0.0, 2.0]])
    array([1, 0])
    """

    weights: FloatArray
    biases: FloatArray
    second_layer: FloatArray
    output_biases: FloatArray
    linear: FloatArray
    labels: NDArray[Any]
    activation: Activation

    def __init__(
        self,
        W: ArrayLike,
        b: ArrayLike,
        A: ArrayLike,
        c: ArrayLike,
        *,
        activation: Activation = ReLU(),  # noqa: B008  it cannot change
        linear: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        check_activation(activation)
        if activation.normalized:
            raise InputError(
                "a ShallowNet needs an activation that does not look at the norms of the weights; "
                f"got {activation!r}."
            )
        weights = _matrix("W", W)
        neurons, dim = weights.shape
        biases = _vector("b", b, neurons)
        outer = _matrix("A", A)
        if outer.shape[1] != neurons or not len(outer):
            raise InputError(
                f"A must have one column for each of the {neurons} neurons and at least one row; "
                f"got the shape {outer.shape}."
            )
        offsets = _vector("c", c, len(outer))
        past = np.zeros((len(outer), dim)) if linear is None else _matrix("linear", linear)
        if past.shape != (len(outer), dim):
            raise InputError(f"linear must have the shape {(len(outer), dim)}; got {past.shape}.")
        if len(outer) == 1:  # a score against an output that is always 0
            outer, past = (np.vstack([np.zeros_like(rows), rows]) for rows in (outer, past))
            offsets = np.concatenate([[0.0], offsets])
        names = np.arange(len(outer)) if labels is None else np.asarray(labels)
        if names.shape != (len(outer),):
            raise InputError(
                f"labels must hold one label for each of the {len(outer)} outputs; got the shape "
                f"{names.shape}."
            )
        different = set(names.tolist())
        if len(different) < 2 or any(label is None or label != label for label in different):
            raise InputError(
                f"labels must hold at least two different ones, and none missing; got {labels!r}."
            )
        for name, value in (
            ("weights", weights),
            ("biases", biases),
            ("second_layer", outer),
            ("output_biases", offsets),
            ("linear", past),
            ("labels", names),
        ):
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "activation", activation)

    def __init_subclass__(cls, **options: Any) -> None:
        raise TypeError(
            "ShallowNet cannot be subclassed, because radii would not follow what is overridden; "
            "give it an Activation, or give a class of your own a method to_shallow."
        )

    def __repr__(self) -> str:
        parts = [f"{len(self.weights)} neurons", f"{self.dim} coordinates"]
        parts.append(f"{len(self.labels)} outputs")
        parts += [] if self.activation == ReLU() else [repr(self.activation)]
        return f"ShallowNet({', '.join(parts)})"

    def view(self) -> HeatMaps:
        """Return the cosines between the weights of neurons; of outputs, where there are none."""
        rows, what = (self.weights, "neuron") if len(self.weights) else (self.linear, "output")
        return mutual_cosines(f"Cosines between the weights of {len(rows)} {what}s", rows, what)

    @property
    def dim(self) -> int:
        """The number of coordinates of the points it takes."""
        return int(self.weights.shape[1])

    def outputs(self, x: ArrayLike) -> FloatArray:
        """Return f(x), shape (outputs, points)."""
        points = checks.matrix("x", x, columns=self.dim).astype(np.float64, copy=False)
        hidden = self.activation.value(self.weights @ points.T + self.biases[:, None])
        offsets = self.output_biases[:, None]
        return self.second_layer @ hidden + self.linear @ points.T + offsets

    def predict(self, x: ArrayLike) -> NDArray[Any]:
        """Return the label of the largest output of each point."""
        return self.labels[self.winners(x)]

    def winners(self, x: ArrayLike) -> IntArray:
        """Return which output is the largest, the first of equals."""
        return self.outputs(x).argmax(axis=0)

    def after_affine(self, matrix: ArrayLike, offset: ArrayLike) -> ShallowNet:
        """Return the network that takes x where this one takes M x + t.

        With a scaler or a projection folded in, radii are in the units of x.

        Parameters
        ----------
        matrix : array of shape (coordinates of this network, coordinates), or of (coordinates,)
            M, or its diagonal.
        offset : array of shape (coordinates of this network,)
            t.

        Examples
        --------
        >>> net = ShallowNet([[1.0]], [0.0], [[1.0]], [-1.0])  # is it above 1?
        >>> net.after_affine([0.5], [0.0]).predict([[1.5], [2.5]])
        array([0, 1])
        """
        M = checks.numbers("matrix", matrix).astype(np.float64)
        t = checks.vector("offset", offset, length=self.dim).astype(np.float64)
        if M.shape != (self.dim,) and (M.ndim != 2 or len(M) != self.dim):
            raise InputError(f"matrix must have {self.dim} rows; got the shape {M.shape}.")
        checks.finite("matrix", M)
        scaled = [rows * M if M.ndim == 1 else rows @ M for rows in (self.weights, self.linear)]
        net = ShallowNet(
            scaled[0],
            self.biases + self.weights @ t,
            self.second_layer,
            self.output_biases + self.linear @ t,
            activation=self.activation,
            linear=scaled[1],
            labels=self.labels,
        )
        return net.in_span_if(self.in_span)


def _matrix(name: str, value: ArrayLike) -> FloatArray:
    """Return a finite matrix of float64, which may have no rows."""
    array = checks.numbers(name, value)
    if array.ndim != 2:
        raise InputError(f"{name} must be a matrix; got the shape {array.shape}.")
    checks.finite(name, array)
    return array.astype(np.float64)


def _vector(name: str, value: ArrayLike, length: int) -> FloatArray:
    return checks.vector(name, value, length=length).astype(np.float64)
