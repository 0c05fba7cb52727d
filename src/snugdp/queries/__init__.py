"""One number or one label about a table: median, quantile, trimmed mean, mode, vote."""
