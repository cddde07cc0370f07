"""Point estimates of linear structural equations: orders, graphs and weights."""
