"""Columns made ready in private: transformers that pay for what they learn."""
