"""Readers of posteriors over trees."""
