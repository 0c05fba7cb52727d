"""Figure 1 of the paper."""
