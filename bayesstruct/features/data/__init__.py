"""Tables of pairs of objects and of choices."""
