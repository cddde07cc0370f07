"""Local scores of Bayesian networks."""
