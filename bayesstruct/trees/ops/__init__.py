"""Operations on trees as PyTensor graphs."""
