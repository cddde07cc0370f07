"""PyTensor operations of Markov random fields."""
