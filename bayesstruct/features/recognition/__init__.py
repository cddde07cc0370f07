"""Recognise models of latent features: one dataclass and one function for each structure."""
