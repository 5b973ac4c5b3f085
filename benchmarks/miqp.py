"""The radius of a shallow network as a mixed-integer program, for SCIP."""

from __future__ import annotations

import numpy as np
import pyscipopt as scip

import featavg as fa
from featavg.arrays import BoolArray, FloatArray


def miqp_radius(
    net: fa.ShallowNet,
    x: FloatArray,
    own: BoolArray,
    opposing: BoolArray,
    *,
    within: float,
    seconds: float = 600.0,
) -> float | None:
    """Return the smallest norm up to `within`, with a binary variable for each ReLU.

    None where the solver runs out of time.
    """
    best = within
    for winner in np.flatnonzero(opposing):
        model, square = _program(net, x, own, int(winner), within)
        model.setParam("limits/time", seconds)
        model.optimize()
        if model.getStatus() == "timelimit":
            return None
        if model.getStatus() != "infeasible":
            best = min(best, within * float(np.sqrt(max(model.getVal(square), 0.0))))
    return best


def _program(
    net: fa.ShallowNet, x: FloatArray, own: BoolArray, winner: int, within: float
) -> tuple[scip.Model, scip.Variable]:
    """Return: minimise |v|^2, in units of `within`, where an output is at least every own one."""
    z = net.weights @ x + net.biases
    past = net.linear @ x + net.output_biases
    # a perturbation outside of the span of all slopes is only longer
    basis, _ = np.linalg.qr(np.vstack([net.weights, net.linear[net.linear.any(axis=1)]]).T)
    weights, linear = within * net.weights @ basis, within * net.linear @ basis
    model = scip.Model()
    model.hideOutput()
    model.setParam("limits/gap", 1e-7)
    model.setParam("numerics/feastol", 1e-8)
    v = [model.addVar(lb=-1, ub=1) for _ in range(basis.shape[1])]
    square = model.addVar(lb=0, ub=1)
    model.addCons(scip.quicksum(c * c for c in v) <= square)
    hidden = []
    for w, offset in zip(weights, z.tolist(), strict=True):
        reach = float(np.linalg.norm(w))
        u = scip.quicksum(float(a) * c for a, c in zip(w, v, strict=True)) + offset
        if abs(offset) >= reach:  # on or off for certain
            hidden.append(u if offset > 0 else 0.0)
            continue
        h, on = model.addVar(lb=0), model.addVar(vtype="B")
        model.addCons(h >= u)
        model.addCons(h <= u + (reach - offset) * (1 - on))
        model.addCons(h <= (reach + offset) * on)
        hidden.append(h)
    for rival in np.flatnonzero(own):
        gains = net.second_layer[winner] - net.second_layer[rival]
        slope = linear[winner] - linear[rival]
        # tolerances are absolute, so what can change within the ball is of order 1
        unit = np.abs(gains) @ np.linalg.norm(weights, axis=1) + np.linalg.norm(slope)
        gains, slope = gains / unit, slope / unit
        ahead = scip.quicksum(float(g) * h for g, h in zip(gains, hidden, strict=True))
        ahead += scip.quicksum(float(s) * c for s, c in zip(slope, v, strict=True))
        model.addCons(ahead + float((past[winner] - past[rival]) / unit) >= 0)
    model.setObjective(square)
    return model, square
