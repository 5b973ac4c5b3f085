"""Networks, and what they are made of: activations and losses."""

from featavg.networks.activation import Activation, LeakyReLU, ReLU, ReLUPower, Softplus
from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.loss import (
    CoarseCrossEntropy,
    CrossEntropy,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    Square,
)
from featavg.networks.multiclass import MultiClassNet
from featavg.networks.shallow import ShallowNet

__all__ = [
    "Activation",
    "BinaryNet",
    "CoarseCrossEntropy",
    "CrossEntropy",
    "Exponential",
    "Hinge",
    "LeakyReLU",
    "Logistic",
    "Loss",
    "MultiClassNet",
    "ReLU",
    "ReLUPower",
    "ShallowNet",
    "Softplus",
    "Square",
    "TwoLayerNet",
]
