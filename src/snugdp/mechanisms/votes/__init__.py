"""The most frequent label, and votes between candidates."""
