"""Persons with several rows: how many of their rows count, or with which weight, before anything else is done."""

from snugdp.tables.persons.keep import keep_rows

__all__ = ["keep_rows"]
