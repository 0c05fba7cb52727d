"""Layer B: exceptions, warnings, output and pickles say nothing about the rows."""
