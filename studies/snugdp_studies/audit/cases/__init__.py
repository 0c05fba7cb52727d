"""Every mechanism of ours as a case: how it is run, what it claims, and neighbours to attack it with."""
