"""The best of many private runs, for the price of a few."""
