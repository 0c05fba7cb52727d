"""Bounds of columns: given, or found privately."""
