"""The radius of a shallow network by exhaustion, and by a mixed-integer program."""

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


def miqp_radius(net, x, own, opposing, *, within):
    """Return the smallest norm up to `within`, by SCIP: a binary variable for each ReLU."""
    import pyscipopt as scip

    z = net.weights @ x + net.biases
    past = net.linear @ x + net.output_biases
    best = within
    for winner in np.flatnonzero(opposing):
        model = scip.Model()
        model.hideOutput()
        model.setParam("limits/gap", 1e-9)
        model.setParam("numerics/feastol", 1e-9)
        v = [model.addVar(lb=-within, ub=within) for _ in x]
        square = model.addVar(lb=0, ub=within**2)
        model.addCons(scip.quicksum(c * c for c in v) <= square)
        hidden = []
        for w, offset in zip(net.weights, z, strict=True):
            reach = within * float(np.linalg.norm(w))
            u = scip.quicksum(float(a) * c for a, c in zip(w, v, strict=True)) + float(offset)
            if offset - reach >= 0 or offset + reach <= 0:  # on or off for certain
                hidden.append(u if offset > 0 else 0.0)
                continue
            h, on = model.addVar(lb=0), model.addVar(vtype="B")
            model.addCons(h >= u)
            model.addCons(h <= u + (reach - float(offset)) * (1 - on))
            model.addCons(h <= (reach + float(offset)) * on)
            hidden.append(h)
        for rival in np.flatnonzero(own):
            gains = net.second_layer[winner] - net.second_layer[rival]
            slope = net.linear[winner] - net.linear[rival]
            ahead = scip.quicksum(float(g) * h for g, h in zip(gains, hidden, strict=True))
            ahead += scip.quicksum(float(s) * c for s, c in zip(slope, v, strict=True))
            model.addCons(ahead + float(past[winner] - past[rival]) >= 0)
        model.setObjective(square)
        model.optimize()
        if model.getStatus() != "infeasible":
            best = min(best, float(np.sqrt(max(model.getObjVal(), 0.0))))
    return best
