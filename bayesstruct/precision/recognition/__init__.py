"""Precision matrices in a model: the variables drawn or maximised with them, and their values."""
