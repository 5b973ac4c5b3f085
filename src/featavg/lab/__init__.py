"""Experiments: their declarations, runs and sweeps."""
