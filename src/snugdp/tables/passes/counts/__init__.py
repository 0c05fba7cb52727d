"""Passes that count what there is: values in order, keys, and groups of rows by keys."""
