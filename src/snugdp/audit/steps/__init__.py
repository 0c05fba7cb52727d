"""Layer N: every step of a plan pays for its own draws."""
