"""The mutation suite: the library with one mistake at a time, and the check that must notice. ``make mutants``."""
