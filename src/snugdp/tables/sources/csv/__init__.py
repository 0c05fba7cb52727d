"""CSV files: records from bytes, cells from records."""
