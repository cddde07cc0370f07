"""Dependency networks: one sparse regression for each column."""
