"""Exact radii by branch and bound."""
