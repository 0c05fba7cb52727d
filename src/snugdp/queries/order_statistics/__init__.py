"""Medians, quantiles, extremes: by rank, or by a test first."""
