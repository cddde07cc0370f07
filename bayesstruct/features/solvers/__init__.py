"""Point estimates of latent features."""
