"""Posteriors of graphs beside each other: of several priors, of two results, and beside bootstrap samples."""
