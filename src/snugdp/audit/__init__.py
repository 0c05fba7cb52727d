"""Audits: every claim against what is measured."""
