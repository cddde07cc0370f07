"""Step methods of trees."""
