"""Centrality, degrees and communities of the nodes of drawn graphs."""
