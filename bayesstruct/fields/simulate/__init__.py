"""Simulated Markov random fields."""
