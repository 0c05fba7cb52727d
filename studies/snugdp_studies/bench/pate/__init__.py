"""PATE beside peers."""
