"""Small tables of persons, and what is in a source."""

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from snugdp.tables.cells import cell as one
from snugdp.tables.grid import Grid
from snugdp.tables.persons import keep_rows
from snugdp.tables.persons.totals import RankEntries
from snugdp.tables.sources import Source, open_source
from tests.tables.tallies import Murderous

Row = tuple[Any, ...]
KEY = 0x9E3779B97F4A7C15F39CC0605CEDC834
NAMES = ("x", "k")
GRID = Grid(-1, -4, 16)


def content(source: Source, names: Sequence[str]) -> Counter[Row]:
    """The rows of a source, by the labels of their cells."""
    found: Counter[Row] = Counter()
    for part in source.partitions():
        for batch in part.batches(names):
            columns = [batch.frame.get_column(name).to_list() for name in names]
            found.update(zip(*([one.label(cell) for cell in column] for column in columns), strict=True))
    return found


def kept(data: object, most: int = 1, key: int = KEY, names: Sequence[str] = NAMES) -> Counter[Row]:
    """What is kept of a table whose persons are in the column "id"."""
    return content(keep_rows(open_source(data), names, "id", most, key), names)


def table(rows: Sequence[Row]) -> pl.DataFrame:
    """Rows of whole-number persons, a number and a text."""
    return pl.DataFrame(rows, schema={"id": pl.Int64, "x": pl.Float64, "k": pl.String}, orient="row")


def some_rows(seed: int, rows: int, persons: int, missing: bool = True) -> list[Row]:
    """Random rows, many of them equal."""
    choose = random.Random(seed)
    ids = [None, *range(persons)] if missing else list(range(persons))
    return [
        (choose.choice(ids), choose.choice([0.5, 1.0, -0.0, 0.0, None, 2.25]), choose.choice("ab")) for _ in range(rows)
    ]


@dataclass(frozen=True)
class MurderousEntries(RankEntries):
    """Kills the executor of the first worker that reads a row, and nobody in the process that made it."""

    tally: Murderous | None = None
    home: int = field(default_factory=os.getpid)

    def of(self, frame: Any) -> Any:
        """The cells of the rows."""
        if self.tally is not None and os.getpid() != self.home:
            self.tally.fold(self.tally.empty(), frame)
        return super().of(frame)
