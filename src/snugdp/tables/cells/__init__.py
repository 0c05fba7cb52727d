"""How cells are read: one rule for one cell, and columns, names and rows that apply it in every container."""

from snugdp.tables.cells.columns import (
    declared,
    declared_types,
    groups,
    inferred,
    labelled,
    numbers,
    numeric,
    truths,
    type_name,
)
from snugdp.tables.cells.dates import dated, dates, moments
from snugdp.tables.cells.names import Names
from snugdp.tables.cells.rows import grid, matrix
from snugdp.tables.cells.sorts import sorts

__all__ = [
    "Names", "dated", "dates", "declared", "declared_types", "grid", "groups", "inferred", "labelled", "matrix",
    "moments", "numbers", "numeric", "sorts", "truths", "type_name",
]  # fmt: skip
