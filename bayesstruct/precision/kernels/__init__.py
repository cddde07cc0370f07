"""Compiled inner loops of precision matrices."""
