"""Posteriors over directed and undirected graphs, whatever model they come from."""
