"""Posterior modes of precision matrices, without PyMC."""
