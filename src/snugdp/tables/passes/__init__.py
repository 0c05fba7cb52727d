"""One pass over a table each: exact sums that merge in any order."""
