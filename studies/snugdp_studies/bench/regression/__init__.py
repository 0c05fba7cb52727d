"""Linear regression beside peers."""
