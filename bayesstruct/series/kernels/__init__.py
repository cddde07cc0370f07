"""Inner loops of series that switch among behaviours, compiled by Numba."""
