"""PyMC step methods of latent features."""
