"""The undirected graph of the arcs, and predictions of single values."""
