"""Bayesian networks in a model: recognised once, for steps and modes."""
