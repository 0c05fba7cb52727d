"""Numerical evidence for docs/errata.md: one test per erratum."""
