"""Layer D: what a whole release gives away, from exact densities."""
