"""Precision matrices in a model: what is drawn or maximised with them, and its values at a point."""
