"""PyTensor operations of sparse regressions."""
