"""Exact and certified numbers: rationals, balls, roots, matrices, eigenvalues."""
