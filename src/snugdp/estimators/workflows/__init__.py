"""Estimators inside searches, grids and pipelines."""
