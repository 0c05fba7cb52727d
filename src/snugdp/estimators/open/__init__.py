"""Tables whose bounds, scales and levels nobody gave: what is found privately, and the fit on it."""
