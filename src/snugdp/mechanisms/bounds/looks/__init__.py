"""Bounds, centre, scale and levels of columns from noisy histograms."""
