"""Trees and forests that fit a table best, with and without hidden nodes."""
