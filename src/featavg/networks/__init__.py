"""The learners of the paper, and its closed-form reference networks."""

from featavg.networks.base import TwoLayerNet
from featavg.networks.binary import BinaryNet
from featavg.networks.multiclass import MultiClassNet

__all__ = ["BinaryNet", "MultiClassNet", "TwoLayerNet"]
