"""Posterior modes of models with a Markov random field."""
