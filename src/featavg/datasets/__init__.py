"""The image data sets: found, fetched, checked and read. NumPy only, no PyTorch."""

from featavg.datasets.catalogue import CATALOGUE
from featavg.datasets.library import ImageData, Place, available, get, load

__all__ = ["CATALOGUE", "ImageData", "Place", "available", "get", "load"]
