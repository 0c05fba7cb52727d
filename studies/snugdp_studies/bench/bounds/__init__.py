"""Fits without bounds beside fits with the true minima and maxima as public bounds."""
