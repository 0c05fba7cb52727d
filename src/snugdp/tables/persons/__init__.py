"""Persons with several rows: how many of their rows count, or with which weight, before anything else is done."""

from snugdp.lazy import loader

__all__ = ["BINS", "WEIGHT", "keep_rows", "person_counts", "weigh_rows"]

__getattr__ = loader(  # all of them need polars
    __name__,
    {
        "snugdp.tables.persons.keep": "keep_rows",
        "snugdp.tables.persons.weights": "BINS WEIGHT person_counts weigh_rows",
    },
)
