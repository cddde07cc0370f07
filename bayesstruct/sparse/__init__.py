"""Sparse regressions: penalties, sparse priors and general optimisers."""
