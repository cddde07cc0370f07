"""Dirichlet-process mixtures of regressions."""
