"""Conditions on linear structural equations that can be computed exactly."""
