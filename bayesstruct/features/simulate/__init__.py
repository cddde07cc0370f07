"""Simulated tables with known latent features."""
