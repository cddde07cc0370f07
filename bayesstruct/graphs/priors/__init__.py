"""Priors of edges that models of several families share."""
