"""Distributions of precision matrices, their edges and their rows."""
