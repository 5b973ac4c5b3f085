"""The image data sets of the paper as NumPy arrays, and WordNet as texts."""

from featavg.datasets.catalogue import CATALOGUE, TEXTS
from featavg.datasets.library import ImageData, Place, available, declared, get, load
from featavg.datasets.text_embeddings import TextEncoder, embed_texts, sentence_encoder
from featavg.datasets.texts import TextData

__all__ = [
    "CATALOGUE",
    "TEXTS",
    "ImageData",
    "Place",
    "TextData",
    "TextEncoder",
    "available",
    "declared",
    "embed_texts",
    "get",
    "load",
    "sentence_encoder",
]
