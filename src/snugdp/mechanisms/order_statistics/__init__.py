"""Median, quantile and trimmed mean by propose, test, release."""
