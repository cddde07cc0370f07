"""Compiled inner loops of Markov random fields."""
