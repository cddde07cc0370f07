"""Exact posteriors over the graphs of a few normal columns, and constants of the G-Wishart distribution."""
