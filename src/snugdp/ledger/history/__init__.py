"""What a ledger writes down: records, what they amount to, and how old ones are found."""
