"""Markov chains over directed acyclic graphs."""
