"""Compiled inner loops of latent features."""
