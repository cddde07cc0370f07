"""Graphs and coefficients of linear structural equations from covariances, without PyMC."""
