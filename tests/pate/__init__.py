"""Tests of private labels from teachers."""
