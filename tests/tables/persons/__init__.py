"""Persons with several rows."""
