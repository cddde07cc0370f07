"""Distributions of clusters, their parameters and their rows."""
