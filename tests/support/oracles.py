"""Slow and simple ways to compute what the package computes fast."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import linprog, nnls


def least_norm(A, b):
    """Minimise |v| with A v <= b (rows of norm 1) by non-negative least squares."""
    if (b >= 0).all():
        return 0.0
    E = -np.vstack([A.T, b])
    target = np.eye(len(E))[-1]
    multipliers, residual = nnls(E, target)
    if residual < 1e-7:
        return np.inf
    remainder = E @ multipliers - target
    v = -remainder[:-1] / remainder[-1]
    assert (A @ v <= b + 1e-6 * (1 + np.abs(b))).all(), "the oracle itself has failed"
    return float(np.linalg.norm(v))


def least_maximum(A, b, low, high):
    """Minimise max |v| with A v <= b in a box, as a linear program."""
    dim = A.shape[1]
    identity, ones = np.eye(dim), np.ones((dim, 1))
    answer = linprog(
        np.r_[np.zeros(dim), 1.0],
        np.block([[A, np.zeros((len(A), 1))], [identity, -ones], [-identity, -ones]]),
        np.r_[b, np.zeros(2 * dim)],
        bounds=[*zip(low, high, strict=True), (0, None)],
    )
    return np.inf if answer.status == 2 else answer.fun


def least_boxed_norm(A, b, low, high):
    """Minimise |v| with A v <= b in a box, by non-negative least squares."""
    rows = np.vstack([A, np.eye(A.shape[1]), -np.eye(A.shape[1])])
    limits = np.r_[b, high, -low]
    norms = np.linalg.norm(rows, axis=1)
    if (limits[norms == 0] < 0).any():
        return np.inf
    rows, limits, norms = (values[norms > 0] for values in (rows, limits, norms))
    return least_norm(rows / norms[:, None], limits / norms)


def has_interior(A, b):
    """Return whether some ball fits into A v <= b."""
    rows, dim = A.shape
    answer = linprog(
        np.r_[np.zeros(dim), -1.0],
        A_ub=np.hstack([A, np.ones((rows, 1))]),
        b_ub=b,
        bounds=[(None, None)] * dim + [(None, 1.0)],
    )
    return answer.status == 0 and -answer.fun > 1e-8


def brute_force_radius(weights, biases, heads, x, y):
    """Return the distance to the nearest point of another decision, over all activation patterns.

    `heads(pattern)` returns the linear functions, as coefficients of the active pre-activations,
    that decide in a linear region: a list of alternatives, each a list of functions that all have
    to be at least 0 (y = +1) or positive (y = -1) for the decision to turn.
    """
    z = weights @ x + biases
    found = []
    for pattern in itertools.product([False, True], repeat=len(weights)):
        on = np.array(pattern)
        for functions in heads(on):
            coefficients = np.atleast_2d(functions)
            A = np.vstack([np.where(on[:, None], -weights, weights), -coefficients @ weights])
            b = np.concatenate([np.where(on, z, -z), coefficients @ z])
            norms = np.linalg.norm(A, axis=1)
            flat = norms < 1e-12
            # a function that is constant in this region: decided by its value
            constant = b[flat]
            if (constant < 0).any():
                continue
            turning = np.arange(len(b)) >= len(on)
            if y == -1 and (b[flat & turning] <= 0).any():
                continue
            A, b = A[~flat] / norms[~flat, None], b[~flat] / norms[~flat]
            found.append((least_norm(A, b), A, b))
    for distance, A, b in sorted(found, key=lambda f: f[0]):
        if np.isinf(distance):
            break
        # the infimum of an open set is the minimum of its closure if the set is not empty
        if y == 1 or has_interior(A, b):
            return distance
    return np.inf


def binary_heads(width, y):
    """Return the alternatives of a BinaryNet: -y f is to be at least 0."""
    signs = np.repeat([1.0, -1.0], width)
    return lambda on: [[-y * signs * on]]


def argmax_heads(net, y):
    """Return the alternatives of an argmax readout: one opposing class at least every own one."""
    A = net.second_layer
    opposing, own = np.flatnonzero(net.output_signs == -y), np.flatnonzero(net.output_signs == y)
    return lambda on: [[(A[i] - A[j]) * on for j in own] for i in opposing]
