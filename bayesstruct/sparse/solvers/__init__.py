"""Posterior modes of sparse regressions, and optimisers for any objective."""
