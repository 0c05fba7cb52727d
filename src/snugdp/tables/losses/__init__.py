"""Losses of linear models, and enclosures of their derivatives."""
