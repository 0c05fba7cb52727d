"""Models on few of many columns."""
