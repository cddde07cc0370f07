"""Tables and figures of latent features."""
