"""The methods of linear and generalised linear models, by name."""
