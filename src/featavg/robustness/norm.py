"""Norms: how the size of a perturbation is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from featavg.arrays import FloatArray
from featavg.errors import InputError


class Norm(ABC):
    """How large a perturbation is. Perturbations are columns, shape (coordinates, points).

    Paper: Section 3.2 has the L2 norm.

    Attributes
    ----------
    name : str
        What results call it.
    rotation_invariant : bool
        Whether rotated perturbations are as large, so that attacks may run in an orthonormal basis
        of the span of the weights.
    """

    name: str
    rotation_invariant = False

    @abstractmethod
    def length(self, u: FloatArray) -> FloatArray:
        """Return the norm of each perturbation, shape (points,)."""

    @abstractmethod
    def dual_length(self, gradient: FloatArray) -> FloatArray:
        """Return the dual norm of each gradient: how fast the best direction goes uphill."""

    @abstractmethod
    def steepest(self, gradient: FloatArray) -> FloatArray:
        """Return the unit step along which each gradient rises fastest; 0 for a gradient of 0."""

    @abstractmethod
    def project(self, u: FloatArray, radius: Any) -> FloatArray:
        """Return the nearest perturbation of at most this norm."""

    def half_space_distance(self, margin: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return how far the plane is on which a linear margin vanishes; infinity if nowhere."""
        slope = self.dual_length(gradient)
        with np.errstate(divide="ignore"):
            return np.where(slope > 0, np.abs(margin) / np.where(slope > 0, slope, 1), np.inf)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class L2(Norm):
    """The Euclidean norm.

    Paper: Section 3.2.

    Examples
    --------
    >>> L2().project(np.array([[3.0], [4.0]]), 1.0).ravel()
    array([0.6, 0.8])
    """

    name = "l2"
    rotation_invariant = True

    def length(self, u: FloatArray) -> FloatArray:
        """Return the Euclidean norm of each perturbation."""
        return np.asarray(np.linalg.norm(u, axis=0))

    def dual_length(self, gradient: FloatArray) -> FloatArray:
        """Return the Euclidean norm, which is its own dual."""
        return self.length(gradient)

    def steepest(self, gradient: FloatArray) -> FloatArray:
        """Return the gradients scaled to norm 1."""
        length = self.length(gradient)
        return gradient / np.where(length > 0, length, 1)

    def project(self, u: FloatArray, radius: Any) -> FloatArray:
        """Return the perturbations, shortened to the radius where they are longer."""
        length = self.length(u)
        return u * np.minimum(1, radius / np.where(length > 0, length, 1))


class LInf(Norm):
    """The maximum norm: the largest absolute coordinate.

    Paper: none, an extension.

    Examples
    --------
    >>> LInf().project(np.array([[3.0], [-0.5]]), 1.0).ravel()
    array([ 1. , -0.5])
    >>> LInf().half_space_distance(np.array([2.0]), np.array([[1.0], [-3.0]]))
    array([0.5])
    """

    name = "linf"

    def length(self, u: FloatArray) -> FloatArray:
        """Return the largest absolute coordinate of each perturbation."""
        return np.asarray(np.abs(u).max(axis=0, initial=0.0))

    def dual_length(self, gradient: FloatArray) -> FloatArray:
        """Return the sums of the absolute values."""
        return np.asarray(np.abs(gradient).sum(axis=0))

    def steepest(self, gradient: FloatArray) -> FloatArray:
        """Return the signs of the gradients."""
        return np.sign(gradient)

    def project(self, u: FloatArray, radius: Any) -> FloatArray:
        """Return the perturbations with coordinates cut off at the radius."""
        return np.clip(u, -radius, radius)


NORMS: dict[str, Norm] = {"l2": L2(), "linf": LInf()}
"""The norms by name."""


def as_norm(norm: str | Norm) -> Norm:
    """Return a norm given by its name or as an object, and refuse what radii are not known for."""
    found = NORMS.get(norm.lower()) if isinstance(norm, str) else norm
    if found is None or type(found) not in (L2, LInf):  # a subclass may measure differently
        raise InputError(f"norm must be {' or '.join(map(repr, NORMS))}; got {norm!r}.")
    return found


def only_l2(norm: str | Norm, method: str) -> Norm:
    """Return the L2 norm, and refuse any other one on behalf of a method that knows no other."""
    found = NORMS.get(norm.lower()) if isinstance(norm, str) else norm
    if type(found) is not L2:
        raise InputError(f"norm must be 'l2' for {method}; got {norm!r}.")
    return found
