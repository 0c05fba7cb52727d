"""Classification beside peers."""
