"""PyTensor operations of latent features."""
