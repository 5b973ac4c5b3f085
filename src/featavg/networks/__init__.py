"""The learners of the paper and of Min and Vidal, and closed-form reference networks."""

from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet
from featavg.networks.polynomial import PolynomialNet

__all__ = ["BinaryNet", "MultiClassNet", "PolynomialNet", "TwoLayerNet"]
