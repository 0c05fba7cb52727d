"""The linear regression experiments of the paper."""
