"""Tables whose bounds, scales and levels nobody gave: what is found in private, and the fit on it."""
