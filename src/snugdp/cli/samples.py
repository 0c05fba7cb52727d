"""A public sample of a table, for forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from snugdp.tables.schema.schema import Schema

_SAME = (
    "--sample is the table itself: what is printed would depend on private rows and be unpaid. Give other rows that "
    "are public, such as those of a table that was published before, or leave out --sample"
)


def sample_rows(sample: str | None, table: str, schema: Schema) -> pl.DataFrame | None:
    """The rows of a public file, with the columns of the schema; an error if it is the private table itself."""
    if sample is None:
        return None
    if _is_same(Path(sample), Path(table)):
        raise ValueError(_SAME)
    from snugdp.cli import reading

    return reading.frame(reading.opened(sample, schema.columns), schema.columns)


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
