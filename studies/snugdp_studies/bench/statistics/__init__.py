"""Quantiles, means and keys of made-up columns beside OpenDP, textbook mechanisms and what is known in hindsight."""
