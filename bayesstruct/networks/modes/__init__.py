"""Posterior modes of models with a Bayesian network."""
