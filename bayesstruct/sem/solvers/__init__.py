"""Point estimates and modes of linear structural equations: orders, graphs and coefficients."""
