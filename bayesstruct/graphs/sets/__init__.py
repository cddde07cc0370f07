"""The drawn graphs as a weighted set, and one graph that stands for them."""
