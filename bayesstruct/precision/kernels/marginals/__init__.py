"""Columns that are not normal: states without an order, weights of single values, and the slices that draw their parameters."""
