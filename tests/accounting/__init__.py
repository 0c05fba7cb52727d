"""The accounting room: independent computations, cross-checks and attacks."""
