"""Columns made ready privately: transformers that pay for what they learn."""
