"""The commands `snugdp bench` and `snugdp paper`."""
