"""Gaussian graphical models: sparse precision matrices."""
