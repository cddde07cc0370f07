"""Tables and options of Bayesian networks."""
