"""Structures of classifiers, and their parameters."""
