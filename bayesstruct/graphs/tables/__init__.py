"""Tables of edges, of arcs, and of differences between groups."""
