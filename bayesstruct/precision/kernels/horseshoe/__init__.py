"""The graphical horseshoe: density, sweeps and draws from the prior."""
