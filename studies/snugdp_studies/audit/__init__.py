"""The audit of the library itself: its cases, its certificates, its source of noise, its entry points."""
