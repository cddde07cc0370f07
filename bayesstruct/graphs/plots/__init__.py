"""Figures of posteriors over graphs."""
