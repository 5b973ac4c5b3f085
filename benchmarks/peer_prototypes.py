"""Nearest-prototype classifiers with exact radii: k-means prototypes, GLVQ and 1-NN.

The nearest prototype p has the largest score ``z_p = p·x - ||p||²/2``. To turn the decision, some
prototype q of the other class must overtake every prototype p of the own class. For one pair that
takes ``(z_p - z_q) / ||p - q||``; `shortest_turn` solves the problem of all p for as few q as
``min_q max_p`` of these bounds leaves open. It finds what `featavg.exact_radii` finds for a
`ShallowNet` without neurons (a test compares them), in a hundredth of the time for many prototypes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

Array = np.ndarray[Any, Any]
Certificates = tuple[Array, Array]  # lower bounds of radii, and which of them are exact

_GLVQ_BATCH, _GLVQ_RATE = 256, 0.02
_GLVQ_SLOPE = 10.0  # of the sigmoid in the loss; the default of ProtoTorch
_NEIGHBOURS = 20


def shortest_turn(own: Array, others: Array, leads: Array, gaps: Array) -> Array:
    """Return the shortest r that makes one of the others level with or ahead of all own points.

    Parameters
    ----------
    own, others : arrays of shape (own points, coordinates) and (other points, coordinates)
        The points p and q.
    leads, gaps : arrays of shape (own points, other points)
        ``z_p - z_q`` and ``||p - q||``.
    """
    bounds = (leads / gaps).max(axis=0)
    best, nearest = np.zeros(own.shape[1]), np.inf
    for q in bounds.argsort():
        if bounds[q] >= nearest:
            break
        step = _onto_polyhedron(own - others[q], leads[:, q], gaps[:, q])
        if (length := float(np.linalg.norm(step))) < nearest:
            best, nearest = step, length
    return best


def _onto_polyhedron(normals: Array, leads: Array, norms: Array) -> Array:
    """Return the shortest r with ``normals @ r <= -leads``."""
    first = (leads / norms).argmax()
    step = -leads[first] * normals[first] / norms[first] ** 2
    if (normals @ step <= -leads + 1e-12 * np.abs(leads).max()).all():
        return step
    # least distance programming (Lawson & Hanson 1974, chapter 23)
    system = np.vstack([-normals.T, leads])
    goal = np.zeros(len(system))
    goal[-1] = 1
    residual = system @ nnls(system, goal)[0] - goal
    return -residual[:-1] / residual[-1]


class Prototypes:
    """A classifier by the label of the nearest point."""

    points: Array
    labels: Array

    def predict(self, x: Array) -> Array:
        return self.labels[pairwise_distances_argmin(x, self.points)]

    def radii(self, x: Array) -> Certificates:
        center = self.points.mean(axis=0)
        axes = np.linalg.qr((self.points - center).T)[0]  # nothing else changes the decision
        points, x = (self.points - center) @ axes, (x - center) @ axes
        scores = x @ points.T - np.square(points).sum(axis=1) / 2
        gaps = np.sqrt(squared_distances(points, points))
        radii = np.empty(len(x))
        for i, score in enumerate(scores):
            own = self.labels == self.labels[score.argmax()]
            leads = score[own][:, None] - score[~own]
            step = shortest_turn(points[own], points[~own], leads, gaps[own][:, ~own])
            radii[i] = np.linalg.norm(step)
        return radii, np.ones(len(x), dtype=bool)


class KMeansPrototypes(Prototypes):
    """The means of k clusters of each class."""

    def __init__(self, number: int, seed: int) -> None:
        self.number, self.seed = number, seed

    def fit(self, x: Array, y: Array) -> KMeansPrototypes:
        classes = np.unique(y)
        means = [
            KMeans(self.number, n_init=3, random_state=self.seed)
            .fit(x[y == label].astype(np.float32))
            .cluster_centers_.astype(np.float64)
            for label in classes
        ]
        self.points, self.labels = np.concatenate(means), np.repeat(classes, self.number)
        return self


class GLVQ(KMeansPrototypes):
    """Generalised learning vector quantisation (Sato & Yamada 1995), from k-means by Adam."""

    steps = 1000

    def fit(self, x: Array, y: Array) -> GLVQ:
        super().fit(x, y)
        scale = float(np.sqrt(np.square(x - x.mean(axis=0)).mean()))
        data, classes = torch.tensor(x / scale, dtype=torch.float32), torch.tensor(y)
        points = torch.tensor(self.points / scale, dtype=torch.float32, requires_grad=True)
        optimizer = torch.optim.Adam([points], lr=_GLVQ_RATE)
        plan = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, self.steps)
        draw = torch.Generator().manual_seed(self.seed)
        for _ in range(self.steps):
            some = torch.randint(len(data), (_GLVQ_BATCH,), generator=draw)
            same = classes[some][:, None] == torch.tensor(self.labels)
            squares = torch.cdist(data[some], points).square()
            own, other = (
                squares.masked_fill(hidden, torch.inf).amin(dim=1) for hidden in (~same, same)
            )
            loss = torch.sigmoid(_GLVQ_SLOPE * (own - other) / (own + other)).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            plan.step()
        self.points = points.detach().double().numpy() * scale
        return self


class NearestNeighbour(Prototypes):
    """1-NN. Only the 20 nearest own points resist, which gives a lower bound.

    It is exact where the perturbation that it belongs to turns the decision of all points.
    """

    def __init__(self, knob: None, seed: int) -> None:
        """Take what the other classifiers take; it has no parameter and nothing random."""

    def fit(self, x: Array, y: Array) -> NearestNeighbour:
        self.points, self.labels = x, y
        return self

    def radii(self, x: Array) -> Certificates:
        predicted, steps = self.predict(x), np.empty(x.shape)
        for label in np.unique(predicted):
            rows, own = np.flatnonzero(predicted == label), self.labels == label
            steps[rows] = _turns(x[rows], self.points[own], self.points[~own])
        exact = self.predict(x + (1 + 1e-6) * steps) != predicted
        return np.linalg.norm(steps, axis=1), exact


def _turns(x: Array, own: Array, others: Array) -> Array:
    """Return the shortest perturbation of each x that turns it against its nearest own points."""
    gaps = np.sqrt(squared_distances(own, others))
    gaps = np.maximum(gaps, 1e-9 * gaps.max())  # a point may be there twice, with both labels
    to_own, to_others = squared_distances(x, own), squared_distances(x, others)
    count = min(_NEIGHBOURS, len(own))
    near = np.argpartition(to_own, count - 1, axis=1)[:, :count]
    steps = np.empty(x.shape)
    for i, p in enumerate(near):
        leads = (to_others[i] - to_own[i, p][:, None]) / 2
        steps[i] = shortest_turn(own[p], others, leads, gaps[p])
    return steps


def squared_distances(a: Array, b: Array) -> Array:
    """Return the squared distance of each a and each b."""
    squares = np.square(a).sum(axis=1)[:, None] - 2 * a @ b.T + np.square(b).sum(axis=1)
    return np.maximum(squares, 0)
