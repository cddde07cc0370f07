"""Parts that models with a precision matrix share."""
