"""Distributions of states and of interactions in Markov random fields."""
