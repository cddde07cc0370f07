"""Distributions of trees, and of the parameters of normal rows given a tree."""
