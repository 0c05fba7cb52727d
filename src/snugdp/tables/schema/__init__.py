"""What is public about a table: its columns, their kinds and bounds, and how a row becomes a vector."""
