"""PyTensor operations of precision matrices."""
