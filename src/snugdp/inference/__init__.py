"""What released numbers say about the population: standard errors, intervals and tests. Post-processing."""
