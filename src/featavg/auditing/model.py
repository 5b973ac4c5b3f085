"""The audit of a trained PyTorch network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from featavg import checks
from featavg.arrays import FloatArray, IntArray
from featavg.auditing.geometry import Geometry
from featavg.errors import InputError, optional_imports
from featavg.estimators.scaling import Scaling
from featavg.estimators.subclasses import SubclassSearch, given_subclasses
from featavg.measures.alignment import cosines

if TYPE_CHECKING:
    from torch import nn

_BATCH = 500


@dataclass(frozen=True, eq=False)
class ModelAudit:
    """The cosines between the neurons of a layer and the subclasses of the points.

    Attributes
    ----------
    layer : str
        The layer whose rows are the neurons, and whose inputs are the features.
    subclasses : dict
        The number of subclasses of each class, given or found.
    geometry : Geometry
        The means of the subclasses at this layer, and the cosines between them.
    cosines : array of shape (subclasses, neurons)
        The cosine of each mean and each neuron.
    neuron_class : array of shape (neurons,)
        The class, from 0, for which each neuron has the largest output weight.
    averaging_index : float
        1 averaging, 0 decoupled; NaN if no class has two subclasses.
    """

    layer: str
    subclasses: dict[Any, int]
    geometry: Geometry
    cosines: FloatArray
    neuron_class: IntArray
    averaging_index: float

    def __repr__(self) -> str:
        return (
            f"ModelAudit({self.layer!r}, {len(self.neuron_class)} neurons, "
            f"{' + '.join(map(str, self.subclasses.values()))} subclasses, "
            f"averaging index {self.averaging_index:.2f})"
        )


def audit_model(
    model: nn.Module,
    X: ArrayLike,
    y: ArrayLike,
    subclass: ArrayLike | None = None,
    *,
    layer: str | None = None,
    random_state: int = 0,
) -> ModelAudit:
    """Measure how much the neurons of a trained PyTorch network average.

    Paper: Figure 2 for any network. The features are the inputs of a linear layer, and its rows are
    the neurons. The class of a neuron is the one for which the next linear layer has the largest
    weight, or the class of its own output if the layer is the last one.

    Parameters
    ----------
    model : torch.nn.Module
        The network. It is used in evaluation mode on its own device, and not changed.
    X : array-like or tensor
        The inputs of the model.
    y : array of shape (points,)
        The classes; in sorted order they correspond to the outputs of the model.
    subclass : array of shape (points,), optional
        The subclasses; found at this layer if not given.
    layer : str, optional
        The name of a linear layer, as in ``model.named_modules()``; by default the one before the
        last, which is the hidden layer of networks that end in linear, ReLU, linear.
    random_state : int
        The seed of the search for subclasses.

    Examples
    --------
    >>> import torch
    >>> from featavg import MultiCluster
    >>> data = MultiCluster(clusters=4, dim=40).sample(200, rng=np.random.default_rng(0))
    >>> hidden, last = torch.nn.Linear(40, 4, bias=False), torch.nn.Linear(4, 2, bias=False)
    >>> hidden.weight.data = torch.tensor(data.centers, dtype=torch.float32)  # one neuron each
    >>> last.weight.data = torch.tensor([[0.0, 0, 1, 1], [1, 1, 0, 0]])
    >>> net = torch.nn.Sequential(hidden, torch.nn.ReLU(), last)
    >>> audit_model(net, data.x, data.y, subclass=data.cluster)
    ModelAudit('0', 4 neurons, 2 + 2 subclasses, averaging index 0.00)
    """
    with optional_imports("audit_model"):
        from torch import nn

    linear = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    if not linear:
        raise InputError("model must have a linear layer.")
    names = list(linear)
    if layer is None:
        if len(names) < 2:
            raise InputError("model must end in two linear layers, or layer must name one.")
        layer = names[-2]
    checks.choice("layer", layer, names)
    labels = np.asarray(y)
    features = _inputs_of(model, linear[layer], X)
    if len(features) != len(labels):
        raise InputError(f"X and y must have equal lengths; got {len(features)} and {len(labels)}.")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError("y must have at least two classes; got one.")
    points = Scaling.of(features).apply(features)
    if subclass is None:
        rng = np.random.default_rng(checks.count("random_state", random_state, minimum=0))
        found = SubclassSearch(points, codes, np.arange(len(points)), classes, rng=rng).find()
    else:
        found = given_subclasses(classes, codes, np.asarray(subclass))
    geometry = Geometry.of(points, found.labels, found.class_of)
    weights, *following = (
        linear[name].weight.detach().double().numpy(force=True)
        for name in names[names.index(layer) : names.index(layer) + 2]
    )
    neuron_class = following[0].argmax(axis=0) if following else np.arange(len(weights))
    if neuron_class.shape != (len(weights),) or neuron_class.max() >= len(classes):
        raise InputError(
            f"layer must be the last linear one or be followed by one with an output for each of "
            f"the {len(classes)} classes of y; got {layer!r}."
        )
    return ModelAudit(
        layer=layer,
        subclasses=found.counts,
        geometry=geometry,
        cosines=cosines(geometry.means, weights),
        neuron_class=neuron_class,
        averaging_index=geometry.averaging_index(weights, neuron_class),
    )


def _inputs_of(model: nn.Module, layer: nn.Module, X: Any) -> FloatArray:
    """Return the inputs of a layer, shape (points, features)."""
    import torch

    from featavg.vision.evaluation import evaluating

    parameter = next(model.parameters())
    points = X if isinstance(X, torch.Tensor) else torch.tensor(np.asarray(X))
    seen: list[FloatArray] = []

    def keep(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        seen.append(inputs[0].detach().double().flatten(1).numpy(force=True))

    hook = layer.register_forward_pre_hook(keep)
    with hook, evaluating(model), torch.no_grad():
        for part in torch.split(points, _BATCH):
            model(part.to(parameter))
    return np.concatenate(seen) if seen else np.zeros((0, 0))
