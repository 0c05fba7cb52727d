"""Counts, sums, means, variances, covariances, correlations, proportions and histograms."""
