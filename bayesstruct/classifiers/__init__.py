"""Bayesian-network classifiers: discrete networks in which a target is a parent of all features."""
