"""Scores of a model on private rows: what a row adds, the noisy sums, and what follows from them."""
