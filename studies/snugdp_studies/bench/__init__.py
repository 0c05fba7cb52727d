"""Side-by-side runs against peers, in one process and on one thread."""
