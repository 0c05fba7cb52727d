"""Bounds of columns: given, or found in private."""
