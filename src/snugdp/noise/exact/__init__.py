"""Exact noise: draws whose law is the declared one, to the last bit."""
