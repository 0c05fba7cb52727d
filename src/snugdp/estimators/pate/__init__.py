"""A student taught by noisy votes of teachers."""
