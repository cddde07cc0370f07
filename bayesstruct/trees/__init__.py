"""Trees: undirected graphs that join all columns without a cycle."""
