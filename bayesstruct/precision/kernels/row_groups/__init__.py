"""Kernels of the precision matrices of several groups of rows."""
