"""Compiled loops of linear structural equations."""
