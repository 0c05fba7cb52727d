"""What objective perturbation costs."""
