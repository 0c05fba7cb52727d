"""The commands: a file for each, which ``main`` loads when it is called."""
