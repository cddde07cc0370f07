"""Compiled inner loops of sparse regressions."""
