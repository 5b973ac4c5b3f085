"""PyTorch modules as networks of one hidden layer."""

from __future__ import annotations

import copy
import operator
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from featavg.arrays import FloatArray
from featavg.errors import InputError
from featavg.networks.shallow import ShallowNet
from featavg.robustness.rewriting import check_scores, probes, quietly
from featavg.robustness.torch_chain import Chain
from featavg.robustness.torch_operations import FUNCTIONS, LAYERS, METHODS, POINTS, SIZE

_ACCEPTED = (
    "a chain of Linear layers with one ReLU or LeakyReLU, and possibly Flatten, Dropout, "
    "BatchNorm1d, a final Softmax and constants that are added or multiplied"
)
_OTHER = object()


def from_torch(model: nn.Module, shape: tuple[int, ...] | None = None) -> ShallowNet:
    """Return a PyTorch module as a network in double precision.

    Its forward pass is recorded by `torch.fx`. Each operation has to be one of those that are
    known, and has to take what the one before it returns.

    Parameters
    ----------
    model : torch.nn.Module
        The module; it is not changed.
    shape : tuple of int, optional
        The shape of a point, if points are no rows.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(3, 5)
    >>> from_torch(torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.Linear(5, 2)))
    ShallowNet(5 neurons, 3 coordinates, 2 outputs)
    """
    name = type(model).__name__
    _refuse_state(model, name)
    try:
        double = copy.deepcopy(model).cpu().double()
        traced = fx.symbolic_trace(double)
    except Exception as error:  # control flow on data, weights on no device, compiled code
        reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
        raise InputError(
            f"model must be {_ACCEPTED}; this {name} cannot be traced by torch.fx ({reason})."
        ) from None
    chain = _Reader(traced, name).read()
    net = chain.network(name, shape)
    x = probes(net)
    inputs = chain.input_shape(shape)
    theirs = quietly(name, lambda points: _forward(double, points, inputs), x)
    check_scores(net, x, theirs, name, link=chain.expected if chain.ending else None)
    return net


def _forward(model: nn.Module, x: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    with torch.no_grad():
        return np.asarray(model(torch.tensor(x).reshape(len(x), *shape)))


def _refuse_state(model: nn.Module, name: str) -> None:
    """Refuse modules that compute something else in training, or whose hooks may."""
    if any(nn.parameter.is_lazy(parameter) for parameter in model.parameters()):
        raise InputError(f"model must have weights; those of this {name} are not initialized.")
    for module in model.modules():
        kind = type(module).__name__
        if module._forward_hooks or module._forward_pre_hooks:
            raise InputError(
                f"model must not have forward hooks, because they may change what it computes; the "
                f"{kind} of this {name} has."
            )
        changes = isinstance(module, nn.modules.dropout._DropoutNd | nn.modules.batchnorm._NormBase)
        if changes and module.training:
            raise InputError(
                f"model must be in evaluation mode, because its {kind} computes something else in "
                "training; call model.eval() first."
            )


class _Reader:
    """Reads the operations of a traced module into a chain."""

    def __init__(self, traced: fx.GraphModule, name: str) -> None:
        self.traced, self.name = traced, name
        self.chain = Chain()
        self.constants = fx.Interpreter(traced)
        self.sizes: dict[Any, str] = {}  # nodes that hold the shape of the points, or their number
        self.current: fx.Node | None = None

    def read(self) -> Chain:
        dependent: set[fx.Node] = set()
        for node in self.traced.graph.nodes:
            if node.op == "placeholder":
                if self.current is not None:
                    raise self._refusal("more than one input")
                self.current = node
                dependent.add(node)
            elif node.op == "output":
                if node.args[0] is not self.current:
                    raise self._refusal("another result than that of its last operation")
            elif dependent.isdisjoint(node.all_input_nodes):
                self.constants.env[node] = self.constants.run_node(node)
            else:
                dependent.add(node)
                if not self._is_size(node):
                    self._read(node)
                    self.current = node
        return self.chain

    def _refusal(self, what: str) -> InputError:
        return InputError(f"model must be {_ACCEPTED}; this {self.name} has {what}.")

    def _is_size(self, node: fx.Node) -> bool:
        """Return whether a node is about the shape of the points, and remember in which way."""
        if node.kwargs or not node.args:
            return False
        source, operation = node.args[0], (node.target, *node.args[1:])
        if source is self.current:
            if operation in (("size",), (getattr, "shape")):
                self.sizes[node] = "shape"
            elif operation == ("size", 0):
                self.sizes[node] = "number"
        elif self.sizes.get(source) == "shape" and operation == (operator.getitem, 0):
            self.sizes[node] = "number"
        return node in self.sizes

    def _read(self, node: fx.Node) -> None:
        arguments = [self._value(argument) for argument in node.args]
        options = {key: self._value(argument) for key, argument in node.kwargs.items()}
        target: Any = node.target
        if node.op == "call_module":
            module = self.traced.get_submodule(target)
            what = repr(module).split("\n", 1)[0]
            understood = arguments == [POINTS] and not options and self._read_layer(module)
        else:
            what = target if isinstance(target, str) else getattr(target, "__name__", str(target))
            table: dict[Any, Any] = METHODS if node.op == "call_method" else FUNCTIONS
            try:
                understood = target in table and table[target](self.chain, *arguments, **options)
            except TypeError:  # arguments that the reader does not have
                understood = False
        if not understood:
            raise self._refusal(f"{what}, or has it in a place or form that is not accepted")

    def _read_layer(self, module: nn.Module) -> bool:
        for kind, reader in LAYERS.items():
            if isinstance(module, kind):
                own = type(module).forward is kind.forward and "forward" not in vars(module)
                return own and reader(self.chain, module)
        return False

    def _value(self, argument: Any) -> Any:
        """Return an argument as readers get it."""
        if isinstance(argument, tuple | list):
            return tuple(self._value(part) for part in argument)
        if not isinstance(argument, fx.Node):
            return argument
        if argument is self.current:
            return POINTS
        if self.sizes.get(argument) == "number":
            return SIZE
        return self.constants.env.get(argument, _OTHER)
