"""Passes over rows as vectors: their products, lengths and distances."""
