"""Additive models: the effect of a number is a curve, those of categories and missing cells are levels."""
