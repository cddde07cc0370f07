"""How tables were read, and other rows of the same columns."""
