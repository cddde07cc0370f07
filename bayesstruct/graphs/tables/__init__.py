"""Tables of edges and of arcs."""
