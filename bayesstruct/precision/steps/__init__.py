"""PyMC step methods of precision matrices."""
