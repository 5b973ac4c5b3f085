"""What all ways to rewrite a model as a `ShallowNet` share: the check that it decides the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.shallow import ShallowNet

DOUBLE, SINGLE = 1e-10, 1e-5
"""How far scores may differ, relative to the terms that they are the sums of."""
_POINTS = 8  # of each kind
_ROWS = 32  # hidden neurons that a point is put next to


def linear_net(weights: ArrayLike, biases: ArrayLike, labels: ArrayLike | None) -> ShallowNet:
    """Return a linear classifier, a `ShallowNet` without neurons.

    Examples
    --------
    >>> linear_net([[1.0, -1.0]], [0.5], ["no", "yes"]).predict([[0.0, 0.0], [0.0, 1.0]])
    array(['yes', 'no'], dtype='<U3')
    """
    S = np.asarray(weights)
    nothing = np.zeros((0, S.shape[-1]))
    return ShallowNet(nothing, np.zeros(0), np.zeros((len(S), 0)), biases, linear=S, labels=labels)


def probes(net: ShallowNet) -> FloatArray:
    """Return points to compare a network and its model at.

    Some are standard normal. Others are next to the kinks of some neurons, at a distance of about 1
    in the units of the points or in those of the neurons, where far-off points would see one side.
    """
    rng = np.random.default_rng(0)
    rows = np.vstack([net.weights, net.linear[1:] - net.linear[:1]])
    offsets = np.concatenate([net.biases, net.output_biases[1:] - net.output_biases[:1]])
    some = rng.permutation(np.flatnonzero(rows.any(axis=1)))[: min(_ROWS, net.dim)]
    rows, offsets = rows[some], offsets[some]
    near = np.linalg.lstsq(rows, -offsets, rcond=None)[0]
    noise = rng.standard_normal((3, _POINTS, net.dim))
    in_neurons = np.linalg.lstsq(rows, rng.standard_normal((len(rows), _POINTS)), rcond=None)[0]
    return np.vstack([noise[0], near + noise[1], near + in_neurons.T])


def quietly(name: str, function: Callable[[Any], Any], x: FloatArray) -> Any:
    """Return what a model says at points, without its warnings; its errors become one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as that of missing feature names
            return function(x.copy())  # a scaler may work in place
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
        raise InputError(f"model must take a matrix of numbers; {name} fails: {reason}.") from error


def check_scores(
    net: ShallowNet,
    x: FloatArray,
    scores: ArrayLike,
    name: str,
    *,
    link: Callable[[FloatArray], FloatArray] | None = None,
    tolerance: float = DOUBLE,
) -> None:
    """Refuse a network whose outputs are not the scores of its model.

    Parameters
    ----------
    net : ShallowNet
        The network.
    x : array of shape (points, coordinates)
        Points.
    scores : array of shape (points,) or (points, outputs)
        The scores of the model at these points: one for each output, or one against 0 for two.
    name : str
        What an error calls the model.
    link : callable, optional
        Makes scores of outputs, such as a softmax; takes and returns (points, outputs).
    tolerance : float
        How far they may differ, relative to the terms of the outputs.
    """
    theirs = np.asarray(scores)
    mine, allowed = net.outputs(x).T, tolerance * magnitudes(net, x).sum(axis=0)[:, None]
    if theirs.size == len(x) and len(net.labels) == 2:
        theirs, mine = theirs.reshape(-1, 1), mine[:, 1:] - mine[:, :1]
    if link is not None:
        mine, allowed = link(mine), tolerance + 2 * allowed
    if theirs.shape != mine.shape or not (np.abs(theirs - mine) <= allowed).all():
        raise _disagreement("scores", name)


def check_predictions(
    net: ShallowNet, x: FloatArray, predicted: ArrayLike, name: str, *, tolerance: float = DOUBLE
) -> None:
    """Refuse a network that does not decide as its model does, but for ties up to rounding."""
    theirs = np.asarray(predicted)
    if theirs.shape != (len(x),):
        raise InputError(
            f"model must predict one label for each point; {name} predicts the shape "
            f"{theirs.shape} for {len(x)} points."
        )
    outputs = net.outputs(x)
    largest = outputs >= outputs.max(axis=0) - 2 * tolerance * magnitudes(net, x).max(axis=0)
    if not (largest & (net.labels[:, None] == theirs[None, :])).any(axis=0).all():
        raise _disagreement("predictions", name)


def magnitudes(net: ShallowNet, x: FloatArray) -> FloatArray:
    """Return the sum of the absolute values of all terms of each output, shape (outputs, points).

    Rounding errors are of the order of this times the precision.
    """
    size = np.abs(x).T
    steepest = max(1.0, *map(abs, net.activation.pieces or (0.0, 1.0)))
    hidden = steepest * (np.abs(net.weights) @ size + np.abs(net.biases)[:, None])
    rest = np.abs(net.linear) @ size + np.abs(net.output_biases)[:, None]
    return np.abs(net.second_layer) @ hidden + rest


def _disagreement(what: str, name: str) -> InputError:
    return InputError(
        f"model must decide as its weights say, because radii would be those of another network; "
        f"the {what} of {name} are others."
    )
