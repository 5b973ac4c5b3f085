"""Measures of what a network has learned."""
