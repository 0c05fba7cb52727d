"""Passes over columns by themselves: sums and counts of their cells."""
