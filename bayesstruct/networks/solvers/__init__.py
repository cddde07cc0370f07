"""Searches for directed acyclic graphs, without PyMC."""
