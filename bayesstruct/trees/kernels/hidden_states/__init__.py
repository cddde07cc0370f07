"""Trees of columns and hidden nodes that have states: messages along them, tables of probabilities, moves among them."""
