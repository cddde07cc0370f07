"""Parts of a model that steps of trees draw."""
