"""PyMC step methods of Bayesian networks."""
