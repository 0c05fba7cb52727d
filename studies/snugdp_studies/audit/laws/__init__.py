"""The laws of the noise: every site against its law, and every coin and fallback inside our source."""
