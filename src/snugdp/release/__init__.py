"""Release: pay first, test in private, then release or refuse."""
