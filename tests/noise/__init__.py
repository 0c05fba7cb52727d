"""Tests of the noise room."""
