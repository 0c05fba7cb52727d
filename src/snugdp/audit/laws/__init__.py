"""Layers S and L: every draw has the law that it declares, down to its last bits."""
