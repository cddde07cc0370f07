"""Rows as sufficient statistics: normal and t rows, latent values of columns that count by their order, missing values."""
