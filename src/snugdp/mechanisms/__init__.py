"""One file a mechanism: what is special about it, with its proof beside it."""
