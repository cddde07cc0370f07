"""Information of pairs of columns, and algorithms on matrices of distances."""
