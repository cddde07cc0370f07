"""Spanning trees of a weighted graph: the best one, sums over all of them, exact draws."""
