"""Predictive checks of Gaussian graphical models."""
