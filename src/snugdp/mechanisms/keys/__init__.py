"""Keys that nobody listed: which may be shown, and how many rows each of them has."""
