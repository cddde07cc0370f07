"""Distributions over latent features and over the data that they explain."""
