"""Experiments beyond the paper: what averages the features, and what decouples them."""

from __future__ import annotations

from types import ModuleType

MODULES: tuple[ModuleType, ...] = ()
"""The modules of the experiments, in the order of the page "What we found"."""
