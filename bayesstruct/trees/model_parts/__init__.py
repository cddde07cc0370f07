"""Parts of models of trees."""
