"""Posterior modes of Markov random fields, without PyMC."""
