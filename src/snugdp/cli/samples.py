"""What is public about the rows of a table, for forecasts: a sample, or how far columns spread."""

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
_SPREAD = "a spread is written as one number for all columns, --spread 0.15, or by name, --spread income=0.05"


def sample_rows(sample: str | None, table: str, schema: Schema) -> pl.DataFrame | None:
    """The rows of a public file, with the columns of the schema; an error if it is the private table itself."""
    if sample is None:
        return None
    if _is_same(Path(sample), Path(table)):
        raise ValueError(_SAME)
    from snugdp.cli import reading

    return reading.frame(reading.opened(sample, schema.columns), schema.columns)


def spread_of(given: list[str] | None) -> dict[str, float] | float | None:
    """One number for all columns, or numbers by name.

    >>> spread_of(["0.15"]), spread_of(["income=0.05", "age=0.2"])
    (0.15, {'income': 0.05, 'age': 0.2})
    """
    if not given:
        return None
    parts = [text.rpartition("=") for text in given]
    try:
        if all(name for name, _, _ in parts):
            return {name: float(number) for name, _, number in parts}
        if len(parts) == 1:
            return float(parts[0][2])
    except ValueError:
        pass
    raise ValueError(_SPREAD)


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)
