"""Posterior modes of any model, and checks of convergence."""
