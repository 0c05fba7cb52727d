"""Counts, sums, means, variances, covariances and histograms: exact whole numbers with noise of a public size."""
