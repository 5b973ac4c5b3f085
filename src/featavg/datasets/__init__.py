"""The image data sets of the paper, as NumPy arrays."""

from featavg.datasets.catalogue import CATALOGUE
from featavg.datasets.library import ImageData, Place, available, get, load

__all__ = ["CATALOGUE", "ImageData", "Place", "available", "get", "load"]
