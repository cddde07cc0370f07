"""Markov random fields over columns of states."""
