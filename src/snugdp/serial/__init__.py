"""What is written to disk: stable names, values and costs."""
