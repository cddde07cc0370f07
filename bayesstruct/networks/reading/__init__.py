"""Effects of setting columns, and how well columns are predicted."""
