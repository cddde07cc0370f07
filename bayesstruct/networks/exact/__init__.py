"""Exact posteriors over directed acyclic graphs."""
