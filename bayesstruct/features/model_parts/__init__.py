"""Parts that several models of latent features share."""
