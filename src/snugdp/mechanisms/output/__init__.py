"""Output perturbation of generalised linear models."""
