"""Steps that draw graph and parameters of linear structural equations."""
