"""Scores of models on private rows, as one release with a plan."""
