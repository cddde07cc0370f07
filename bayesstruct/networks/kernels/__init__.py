"""Compiled inner loops of Bayesian networks."""
