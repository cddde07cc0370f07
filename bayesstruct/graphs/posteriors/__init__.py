"""Posteriors over edges, arcs and directed acyclic graphs, read from results."""
