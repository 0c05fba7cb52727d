"""Studies of snugdp: the experiments of the paper, and benchmarks beside peers."""
