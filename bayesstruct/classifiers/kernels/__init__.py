"""Scores of classifiers and probabilities of their classes, arrays in and arrays out."""
