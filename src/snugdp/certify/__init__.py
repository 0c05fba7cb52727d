"""Test: the ways to certify in private that a proposal is safe for these data."""
