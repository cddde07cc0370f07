"""Latent binary features: of rows, of pairs of objects, of choices."""
