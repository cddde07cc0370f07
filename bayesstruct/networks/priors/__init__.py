"""Distributions of directed acyclic graphs, their parameters and their rows."""
