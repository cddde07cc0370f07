"""The G-Wishart distribution: draws, constants, and sweeps over its graph and matrix."""
