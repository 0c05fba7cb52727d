"""The PATE experiments of the paper."""
