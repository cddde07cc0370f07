"""Probabilities of classes from results of classifiers."""
