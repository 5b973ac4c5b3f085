"""The radius of a shallow network by exhaustion, and networks to try it on."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import nnls

import featavg as fa


def linear_pieces(net, x, own, opposing):
    """Yield A, b of every linear piece in which an opposing output decides: A v <= b."""
    left, right = net.activation.pieces
    z = net.weights @ x + net.biases
    past = net.linear @ x + net.output_biases
    for pattern in itertools.product([False, True], repeat=len(z)):
        on = np.array(pattern, dtype=bool)
        factors = net.second_layer * np.where(on, right, left)
        slopes, values = factors @ net.weights + net.linear, factors @ z + past
        signs = np.where(on[:, None], -net.weights, net.weights), np.where(on, z, -z)
        for winner in np.flatnonzero(opposing):
            rows = np.vstack([signs[0], slopes[own] - slopes[winner]])
            limits = np.concatenate([signs[1], values[winner] - values[own]])
            lengths = np.linalg.norm(rows, axis=1)
            flat = lengths < 1e-12
            if (limits[flat] < 0).any():
                continue
            yield rows[~flat] / lengths[~flat, None], limits[~flat] / lengths[~flat]


def nearest(A, b, far=1e4):
    """Minimise |v| with A v <= b by non-negative least squares; infinity beyond `far`."""
    if (b >= 0).all():
        return 0.0
    E = -np.vstack([A.T, b])
    target = np.eye(len(E))[-1]
    multipliers, residual = nnls(E, target)
    if residual * far < 1:
        return np.inf
    remainder = E @ multipliers - target
    v = -remainder[:-1] / remainder[-1]
    assert (A @ v <= b + 1e-6 * (1 + np.abs(b))).all(), "the oracle itself has failed"
    return float(np.linalg.norm(v))


def brute_force(net, x, own, opposing):
    """Return the smallest norm over all linear pieces."""
    return min((nearest(A, b) for A, b in linear_pieces(net, x, own, opposing)), default=np.inf)


def random_shallow(rng, neurons=6, dim=3, outputs=3, leak=0.0):
    """Return a network with any second layer, output biases and, at times, a linear part."""
    return fa.ShallowNet(
        rng.standard_normal((neurons, dim)),
        rng.standard_normal(neurons),
        rng.standard_normal((outputs, neurons)),
        rng.standard_normal(outputs),
        activation=fa.LeakyReLU(leak) if leak else fa.ReLU(),
        linear=rng.standard_normal((outputs, dim)) if rng.random() < 0.3 else None,
    )


def sides(net, x):
    """Return the outputs that keep the decision at a point and those that turn it."""
    own = net.labels == net.predict(x[None])[0]
    return own, ~own


def near_duplicates(rng):
    """Return a network whose neurons come in pairs that cancel but for 1e-12 to 1e-7 of them."""
    neurons, dim, outputs = (int(rng.integers(*r)) for r in ((2, 6), (1, 6), (1, 4)))
    W, b = rng.standard_normal((neurons, dim)), rng.standard_normal(neurons)
    A = rng.standard_normal((outputs, neurons))
    apart = 10.0 ** rng.uniform(-12, -7)
    return fa.ShallowNet(
        np.vstack([W, W * (1 + apart * rng.standard_normal(W.shape))]),
        np.concatenate([b, b * (1 + apart * rng.standard_normal(neurons))]),
        np.hstack([A, -A]),
        np.zeros(outputs),
    )
