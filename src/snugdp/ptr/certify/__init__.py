"""The three ways to build a private test: Gaussian bounds on statistics, smooth sensitivity, distance."""
