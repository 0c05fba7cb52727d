"""Fits with intervals: rows whitened in private, and what standard errors are computed from."""
