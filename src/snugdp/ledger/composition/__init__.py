"""How releases add up, and whether one more is taken."""
