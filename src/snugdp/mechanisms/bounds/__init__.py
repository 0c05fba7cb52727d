"""Bounds of columns."""
