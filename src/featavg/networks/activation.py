"""Activations: the functions that neurons apply to their pre-activations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from featavg import checks
from featavg.arrays import BoolArray, FloatArray
from featavg.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

# Where promises are checked: slopes at the first, which are no round numbers because an activation
# may have a kink there; pieces and degree also at the others.
_NEAR = 3.17 * 10.0 ** np.arange(-3, 3)
_FAR = 3.17 * 10.0 ** np.arange(-9, 10)


class Activation(ABC):
    r"""A function :math:`\varphi` of the pre-activation, and the properties that methods rely on.

    Paper: the ReLU of Section 3.2; others are extensions. An activation of your own is a subclass
    with `value` and `slope`; the attributes below are promises, which are checked when a network is
    made, and without them methods that rely on them refuse.

    Attributes
    ----------
    pieces : pair of float, or None
        The slopes left and right of 0, where the activation is linear on both sides of it and 0 at
        it; None where it is not.
    degree : int or None
        The p with :math:`\varphi(cz) = c^p \varphi(z)` for c > 0; None where there is none.
    normalized : bool
        Whether the output of a neuron with the weight w is :math:`\|w\|\,\varphi(z/\|w\|)`, which
        is homogeneous of degree 1 in w for every :math:`\varphi`.
    """

    pieces: tuple[float, float] | None = None
    degree: int | None = None
    normalized: bool = False

    @abstractmethod
    def value(self, z: FloatArray) -> FloatArray:
        """Return the activation at each pre-activation."""

    @abstractmethod
    def slope(self, z: FloatArray) -> FloatArray | BoolArray:
        """Return its derivative; at a kink the one from the right."""

    def torch(self, z: Tensor) -> Tensor:
        """Return the activation of a tensor."""
        raise InputError(f"to_torch needs an activation with a method torch; got {self!r}.")


@dataclass(frozen=True)
class ReLU(Activation):
    r"""The ReLU, :math:`\max(z, 0)`, with the slope 1 at 0.

    Paper: Section 3.2.

    Examples
    --------
    >>> ReLU().value(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    pieces = (0.0, 1.0)
    degree = 1

    def value(self, z: FloatArray) -> FloatArray:
        """Return max(z, 0)."""
        return np.maximum(z, 0)

    def slope(self, z: FloatArray) -> BoolArray:
        """Return whether z >= 0."""
        return z >= 0

    def torch(self, z: Tensor) -> Tensor:
        """Return max(z, 0) of a tensor."""
        return z.relu()


@dataclass(frozen=True)
class LeakyReLU(Activation):
    """The leaky ReLU: z where it is positive, else `leak` times z.

    Paper: none, an extension.

    Examples
    --------
    >>> LeakyReLU(0.5).value(np.array([-1.0, 2.0]))
    array([-0.5,  2. ])
    """

    leak: float = 0.01
    degree = 1

    def __post_init__(self) -> None:
        checks.scale("leak", self.leak, zero=True)

    @property
    def pieces(self) -> tuple[float, float]:  # type: ignore[override]
        """The slopes left and right of 0."""
        return float(self.leak), 1.0

    def value(self, z: FloatArray) -> FloatArray:
        """Return z, or `leak` times z where it is negative."""
        return np.where(z >= 0, z, self.leak * z)

    def slope(self, z: FloatArray) -> FloatArray:
        """Return 1, or `leak` where z is negative."""
        return np.where(z >= 0, 1.0, self.leak).astype(z.dtype)

    def torch(self, z: Tensor) -> Tensor:
        """Return the leaky ReLU of a tensor."""
        import torch

        return torch.nn.functional.leaky_relu(z, self.leak)


@dataclass(frozen=True)
class ReLUPower(Activation):
    r"""A power of the ReLU, :math:`\max(z, 0)^p`.

    Paper: none, an extension. With `normalized` and a trained second layer it is the network of
    Min and Vidal, "Can implicit bias imply adversarial robustness?" (ICML 2024), whose conjecture
    is Theorem 4.6: a neuron has the output :math:`\mathrm{relu}(z)^p / \|w\|^{p-1}`.

    Examples
    --------
    >>> ReLUPower(3).value(np.array([-1.0, 2.0]))
    array([0., 8.])
    """

    power: int = 2
    normalized: bool = False

    def __post_init__(self) -> None:
        checks.count("power", self.power)
        checks.flag("normalized", self.normalized)

    @property
    def pieces(self) -> tuple[float, float] | None:  # type: ignore[override]
        """Those of the ReLU for the power 1."""
        return (0.0, 1.0) if self.power == 1 else None

    @property
    def degree(self) -> int:  # type: ignore[override]
        """The power."""
        return self.power

    def value(self, z: FloatArray) -> FloatArray:
        """Return max(z, 0) to the power."""
        return np.maximum(z, 0) ** self.power

    def slope(self, z: FloatArray) -> FloatArray:
        """Return the derivative."""
        if self.power == 1:
            return (z >= 0).astype(z.dtype)
        return self.power * np.maximum(z, 0) ** (self.power - 1)

    def torch(self, z: Tensor) -> Tensor:
        """Return the power of the ReLU of a tensor."""
        return z.relu() ** self.power


@dataclass(frozen=True)
class Softplus(Activation):
    r"""The softplus, :math:`\log(1 + e^{\beta z})/\beta`: a ReLU without a kink.

    Paper: none, an extension.

    Examples
    --------
    >>> Softplus(sharpness=10).value(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.    , 0.0693, 2.    ])
    """

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        checks.scale("sharpness", self.sharpness)

    def value(self, z: FloatArray) -> FloatArray:
        """Return log(1 + exp(sharpness z)) / sharpness."""
        return np.logaddexp(0, self.sharpness * z) / self.sharpness

    def slope(self, z: FloatArray) -> FloatArray:
        """Return the logistic function of sharpness times z."""
        return expit(self.sharpness * z)

    def torch(self, z: Tensor) -> Tensor:
        """Return the softplus of a tensor."""
        import torch

        # without PyTorch's shortcut to z for large arguments
        return torch.logaddexp(torch.zeros_like(z), self.sharpness * z) / self.sharpness


# By name, for files: only these can be saved.
ACTIVATIONS = {kind.__name__: kind for kind in (ReLU, LeakyReLU, ReLUPower, Softplus)}


def check_activation(activation: Activation) -> Activation:
    """Return an activation whose promises hold at some points; refuse another.

    A subclass of `ReLU` that changes `value` but not `pieces`, such as min(max(z, 0), 6), would
    otherwise be taken for a ReLU.
    """
    if not isinstance(activation, Activation):
        raise InputError(f"activation must be an Activation; got {activation!r}.")
    # others may be equal to each other although they are not alike
    known = type(activation) in ACTIVATIONS.values()
    return _kept(activation) if known else _checked(activation)


def _checked(activation: Activation) -> Activation:
    with np.errstate(over="ignore", invalid="ignore"):  # far from 0 an activation may be infinite
        broken = _broken_promise(activation)
    if broken:
        raise InputError(f"{broken}; got {activation!r}.")
    return activation


_kept = lru_cache(maxsize=64)(_checked)


def _broken_promise(activation: Activation) -> str | None:
    """Return the rule that an activation breaks at some points near 0 or far from it."""
    near = np.array([-3.1, -1.7, -0.4, 0.6, 1.3, 2.9, *_NEAR, *-_NEAR])
    far = np.concatenate([near, _FAR, -_FAR])
    step = 1e-6 * np.maximum(np.abs(near), 1e-3)
    value, slope = activation.value(near), np.asarray(activation.slope(near), dtype=np.float64)
    if np.shape(value) != near.shape or np.shape(slope) != near.shape:
        return "value and slope must return one number for each pre-activation"
    measured = (activation.value(near + step) - activation.value(near - step)) / (2 * step)
    if not np.allclose(slope, measured, rtol=1e-4, atol=1e-6):
        return "slope must be the derivative of value"
    value, pieces, degree = activation.value(far), activation.pieces, activation.degree
    if pieces is not None and not np.allclose(
        value, np.where(far < 0, *pieces) * far, rtol=1e-7, atol=0
    ):
        return "value must be linear with the slopes in pieces"
    if degree is not None and not np.allclose(
        activation.value(1.5 * far), 1.5**degree * value, rtol=1e-7, atol=0
    ):
        return "value must be homogeneous of the stated degree"
    return None


def refuse_smooth(activation: Activation, method: str) -> tuple[float, float]:
    """Return the slopes of a piecewise linear activation, and refuse another."""
    if activation.pieces is None:
        raise InputError(f"{method} needs a piecewise linear activation; got {activation!r}.")
    return activation.pieces
