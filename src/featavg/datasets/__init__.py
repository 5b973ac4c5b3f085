"""Image data sets as NumPy arrays, WordNet as texts, and weights of published networks."""

from featavg.datasets.catalogue import CATALOGUE, TEXTS
from featavg.datasets.library import ImageData, available, declared, get, load
from featavg.datasets.places import Place
from featavg.datasets.text_embeddings import TextEncoder, embed_texts, sentence_encoder
from featavg.datasets.texts import TextData
from featavg.datasets.weights import WEIGHTS, get_weights, read_weights, weights_place

__all__ = [
    "CATALOGUE",
    "TEXTS",
    "WEIGHTS",
    "ImageData",
    "Place",
    "TextData",
    "TextEncoder",
    "available",
    "declared",
    "embed_texts",
    "get",
    "get_weights",
    "load",
    "read_weights",
    "sentence_encoder",
    "weights_place",
]
