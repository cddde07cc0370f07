"""Distributions of the parameters of linear structural equations, and of rows given them."""
