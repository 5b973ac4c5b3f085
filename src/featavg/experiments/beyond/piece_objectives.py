"""Gradient descent on affine pieces from averaged features, for several readouts and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logsumexp, softmax

from featavg.arrays import FloatArray, IntArray
from featavg.data.law import Sample
from featavg.estimators.piece_training import Examples, radius_gradients
from featavg.estimators.pieces import PieceHead

RATE_OF_CROSS_ENTROPY = 5e-3
RATE_OF_RADIUS = 0.05  # relative to the mean squared norm of pieces, on which radii do not depend


@dataclass(frozen=True)
class Objective:
    """A readout ("mean", "soft" or "max") and a loss of it ("cross-entropy" or "radius")."""

    readout: str
    loss: str
    title: str


OBJECTIVES: Mapping[str, Objective] = {
    "mean": Objective("mean", "cross-entropy", "cross-entropy of the mean piece"),
    "soft": Objective("soft", "cross-entropy", "cross-entropy of log-mean-exp"),
    "max": Objective("max", "cross-entropy", "cross-entropy of the largest piece"),
    "radius": Objective("max", "radius", "radius of the largest piece"),
}


def class_values(head: PieceHead, x: FloatArray, readout: str) -> tuple[FloatArray, FloatArray]:
    """Return the values of both classes, and the derivative of its class's value by each piece.

    Their shapes are (points, 2) and (points, pieces). All three readouts of equal pieces are the
    value of these pieces.
    """
    pieces = head.piece_values(x)
    shares, values = np.zeros_like(pieces), np.empty((len(x), 2))
    for c in (0, 1):
        own = head.class_of == c
        some = pieces[:, own]
        if readout == "mean":
            values[:, c], shares[:, own] = some.mean(axis=1), 1 / some.shape[1]
        elif readout == "soft":
            values[:, c] = logsumexp(some, axis=1) - np.log(some.shape[1])
            shares[:, own] = softmax(some, axis=1)
        else:
            values[:, c] = some.max(axis=1)
            shares[np.arange(len(x)), np.flatnonzero(own)[some.argmax(axis=1)]] = 1
    return values, shares


def cross_entropy_gradients(
    head: PieceHead, x: FloatArray, classes: IntArray, readout: str
) -> list[FloatArray]:
    """Return the derivatives of the mean cross-entropy of two classes by weights and biases."""
    values, shares = class_values(head, x, readout)
    signs = 2 * classes - 1
    residuals = expit(-signs * (values[:, 1] - values[:, 0])) / len(x)
    pulls = -(residuals * signs)[:, None] * shares * (2 * head.class_of - 1)
    return [pulls.T @ x, pulls.sum(axis=0)]


def averaged_head(
    train: Sample, pieces: int, perturbation: float, rng: np.random.Generator
) -> PieceHead:
    """Return equal pieces for each class, the sum of its centres over d, slightly perturbed.

    The perturbation is random and relative to the norm of a piece. The margin at centres is 1.
    """
    signs = np.repeat([-1, 1], pieces)
    sums = (signs[:, None] == train.law.signs) @ train.centers
    weights = sums / (train.law.signal * np.square(train.centers[0]).sum())
    noise = rng.standard_normal(weights.shape)
    noise *= np.linalg.norm(weights, axis=1, keepdims=True) / np.linalg.norm(
        noise, axis=1, keepdims=True
    )
    return PieceHead(weights + perturbation * noise, np.zeros(2 * pieces), (signs + 1) // 2)


def descent(
    head: PieceHead, train: Sample, objective: Objective, margin: float, steps: Sequence[int]
) -> list[PieceHead]:
    """Return the pieces at some steps of gradient descent on all points, step 0 first."""
    x, classes = train.x, (train.y == 1).astype(np.int64)
    examples = Examples(x, classes, np.ones(len(x)))
    kept = [head]
    for step in range(1, max(steps) + 1):
        if objective.loss == "radius":
            gradients = radius_gradients(head, examples, margin)
            rate = RATE_OF_RADIUS * float(np.square(head.weights).sum(axis=1).mean())
        else:
            gradients = cross_entropy_gradients(head, x, classes, objective.readout)
            rate = RATE_OF_CROSS_ENTROPY
        weights, biases = head.weights - rate * gradients[0], head.biases - rate * gradients[1]
        head = replace(head, weights=weights, biases=biases)
        if step in steps:
            kept.append(head)
    return kept


def spread_of_pieces(head: PieceHead, train: Sample) -> float:
    r"""Return the size of what decouples: how pieces of a class differ along its centres.

    With :math:`w_p - \bar w` of a class expanded in the centres of its side, this is the root of
    the sum of all squared coefficients, of both classes.
    """
    total = 0.0
    for c, sign in enumerate((-1, 1)):
        own = head.weights[head.class_of == c]
        centers = train.centers[train.law.signs == sign]
        along = (own - own.mean(axis=0)) @ centers.T / np.square(centers).sum(axis=1)
        total += float(np.square(along).sum())
    return float(np.sqrt(total))


def center_margin(head: PieceHead, train: Sample, readout: str) -> float:
    """Return the mean over clusters of the own class's value at the centre minus the other."""
    values, _ = class_values(head, train.law.signal * train.centers, readout)
    return float((train.law.signs * (values[:, 1] - values[:, 0])).mean())
