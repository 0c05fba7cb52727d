"""Principal components beside peers."""
