"""What each user remembers of a ledger, and how it is recognised."""
