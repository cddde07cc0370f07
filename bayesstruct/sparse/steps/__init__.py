"""PyMC step methods of sparse regressions."""
