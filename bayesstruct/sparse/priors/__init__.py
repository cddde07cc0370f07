"""Sparse prior distributions of coefficients."""
