"""Propose: the plan of a release, public and made before any row is read."""
