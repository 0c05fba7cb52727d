"""How large an error is to be expected, and which budget or how many rows it takes: from public numbers alone."""
