"""Bayesian networks: directed acyclic graphs with parameters."""
