"""Compiled inner loops of mixtures."""
