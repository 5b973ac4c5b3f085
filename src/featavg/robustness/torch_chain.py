"""A chain of layers, composed into a network of one hidden layer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_softmax, softmax

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.activation import LeakyReLU, ReLU
from featavg.networks.shallow import ShallowNet
from featavg.robustness.rewriting import linear_net


@dataclass(frozen=True, eq=False)
class Linear:
    """W x + b."""

    matrix: FloatArray
    offset: FloatArray


@dataclass(frozen=True, eq=False)
class Scale:
    """A x + t entry by entry, with arrays that are broadcast to the shape of a batch."""

    factor: FloatArray
    offset: FloatArray


@dataclass(frozen=True)
class Leak:
    """The ReLU, or the leaky ReLU with a slope other than 0."""

    slope: float


@dataclass(frozen=True)
class Flatten:
    """The coordinates of each point as one vector, whose length may be known."""

    width: int | None = None


Operation = Linear | Scale | Leak | Flatten


@dataclass
class Chain:
    """The operations of a module in order, and the softmax that it may end with.

    Examples
    --------
    >>> chain = Chain()
    >>> chain.add(Scale(np.array(2.0), np.array(-1.0))) and chain.add(Leak(0.0))
    True
    >>> chain.add(Linear(np.array([[1.0, -1.0]]), np.zeros(1)))
    True
    >>> chain.network("Module").outputs([[3.0, 1.0]])  # relu(5) - relu(1)
    array([[0.],
           [4.]])
    """

    operations: list[Operation] = field(default_factory=list)
    ending: str | None = None

    def add(self, operation: Operation) -> bool:
        """Add an operation; return False where none may follow."""
        self.operations.append(operation)
        return self.ending is None

    def end(self, ending: str) -> bool:
        """End with "softmax" or "log_softmax"; return False where there is an end already."""
        first, self.ending = self.ending is None, ending
        return first

    @property
    def start(self) -> int:
        """Which operation is the first linear one; as many as there are if none is."""
        linear = (k for k, one in enumerate(self.operations) if isinstance(one, Linear))
        return next(linear, len(self.operations))

    @property
    def width(self) -> int:
        """The number of coordinates, which the first linear operation says."""
        return next(one.matrix.shape[1] for one in self.operations if isinstance(one, Linear))

    def network(self, name: str, shape: tuple[int, ...] | None = None) -> ShallowNet:
        """Return the network.

        Parameters
        ----------
        name : str
            What an error calls the module.
        shape : tuple of int, optional
            The shape of a point, if points are no rows. Without it a constant that would mean
            different things for different shapes is refused.
        """
        if self.start == len(self.operations):
            raise InputError(f"model must have a Linear layer; this {name} has none.")
        layers = sum(isinstance(one, Leak) for one in self.operations)
        if layers > 1:
            raise InputError(
                f"model must have one hidden layer, because exact radii of deeper networks are not "
                f"known; this {name} has {layers}."
            )
        M: FloatArray = np.ones(self.width)  # or its diagonal
        t: FloatArray = np.zeros(self.width)
        hidden = None
        for k, one in enumerate(self.operations):
            if isinstance(one, Linear):
                _refuse_width(name, "a Linear layer", one.matrix.shape[1], len(t))
                t = one.matrix @ t + one.offset
                M = one.matrix * M if M.ndim == 1 else one.matrix @ M
            elif isinstance(one, Scale):
                image = k < self.start and self._is_flattened(k + 1, self.start)
                image = image and not self._is_flattened(0, k)
                factor, offset = (
                    _spread(part, len(t), image, shape, name) for part in (one.factor, one.offset)
                )
                M, t = (factor * M.T).T, factor * t + offset
            elif isinstance(one, Leak):
                hidden = (np.diag(M) if M.ndim == 1 else M, t, one.slope)
                M, t = np.ones(len(t)), np.zeros(len(t))
            elif one.width is not None:
                _refuse_width(name, "a view", one.width, len(t))
        M = np.diag(M) if M.ndim == 1 else M
        if self.ending is not None and len(t) == 1:
            raise InputError(f"a softmax needs at least two outputs; this {name} has one.")
        if hidden is None:
            return linear_net(M, t, None)
        activation = LeakyReLU(hidden[2]) if hidden[2] else ReLU()
        return ShallowNet(hidden[0], hidden[1], M, t, activation=activation)

    def _is_flattened(self, begin: int, end: int) -> bool:
        return any(isinstance(one, Flatten) for one in self.operations[begin:end])

    def input_shape(self, given: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return the shape of points that is given, if the module flattens them.

        Otherwise one that all constants before the first linear layer fit.
        """
        if given is not None and self._is_flattened(0, self.start):
            return given
        shape: tuple[int, ...] = (self.width,)
        for one in self.operations[: self.start]:
            for part in (one.factor, one.offset) if isinstance(one, Scale) else ():
                own = _without_leading_ones(part).shape
                if len(own) < 2:
                    continue
                if part.size == self.width:
                    return own
                shape = (own[0], self.width // own[0], *own[2:])
        return shape

    def expected(self, outputs: FloatArray) -> FloatArray:
        """Return what the module returns where the network has these outputs, (points, outputs)."""
        if self.ending is None:
            return outputs
        return (softmax if self.ending == "softmax" else log_softmax)(outputs, axis=1)


def _spread(
    array: FloatArray, width: int, image: bool, shape: tuple[int, ...] | None, name: str
) -> FloatArray:
    """Return a constant that is broadcast to points as one number for each coordinate.

    Images are flattened row by row, channel after channel. Where their shape is not known, a number
    for each channel, of shape (channels, 1, 1), still stays the same for as many coordinates as a
    channel has.
    """
    own = _without_leading_ones(array)
    if own.size == 1:
        return np.full(width, own.item())
    if image and shape is not None:
        if np.prod(shape) == width and _fits(own.shape, shape):
            return np.broadcast_to(own, shape).ravel()
    elif own.shape == (width,) or (image and own.size == width):
        return own.ravel()
    elif image and own.ndim > 2 and own.size == len(own) and width % len(own) == 0:
        return np.repeat(own.ravel(), width // len(own))
    given = f"the shape {shape}" if image and shape else f"the {width} coordinates"
    hint = ", which may depend on the shape of points: give them their shape" if image else ""
    raise InputError(
        f"constants of the model must fit {given} of its points; this {name} has one of the shape "
        f"{array.shape}{'' if shape else hint}."
    )


def _fits(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether an array of one shape can be broadcast to the other."""
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False


def _without_leading_ones(array: FloatArray) -> FloatArray:
    while array.ndim > 1 and array.shape[0] == 1:
        array = array[0]
    return array


def _refuse_width(name: str, what: str, width: int, given: int) -> None:
    if width != given:
        raise InputError(
            f"layers of the model must fit each other; {what} of this {name} takes {width} "
            f"coordinates and gets {given}."
        )
