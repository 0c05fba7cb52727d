"""All rows of each person, with a weight that bounds their sum; and how many persons have how many rows.

The line numbers in the comments are those of ``persons.proof.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.tables.engines import gather
from snugdp.tables.passes.base import SummingPass, Sums
from snugdp.tables.passes.vectors.weighted import WEIGHT
from snugdp.tables.persons.hashing import Words
from snugdp.tables.persons.order import Ordered, by_piece
from snugdp.tables.persons.passes import PersonPass, all_persons, checked
from snugdp.tables.schema.kinds import DType
from snugdp.tables.sources import Source
from snugdp.tables.sources.base import Frame

Integers = NDArray[np.int64]

BINS = 48  # persons with 1, 2, 3-4, 5-8, ... rows; the last bin has all that have more
_COUNT = "rows"
_MAX_CAP = ((1 << 63) - 1) // WEIGHT


def weigh_rows(
    source: Source,
    columns: Sequence[str],
    person: str,
    cap: int,
    key: int,
    *,
    weight: str = "weight",
    progress: bool | None = None,
) -> Source:
    """The columns of a table with all rows, and their weights in a column more, called ``weight``.

    The rows of a person with k rows have the weight floor(W min(k, cap) / k), W = ``WEIGHT``; a row without an
    identifier is a person with one row. ``person`` and ``key`` are as in ``keep_rows``; on the key only the order of
    rows depends.

    Guarantee: the rows and weights are the union over persons of a function of that person's own rows and of public
    values; the weights of a person are at least 0, and their sum at most W cap (``persons.proof.md``, Theorem 2).
    """
    if isinstance(cap, bool) or not isinstance(cap, int) or not 1 <= cap <= _MAX_CAP:
        raise ValueError(f"the cap must be a whole number from 1 to {_MAX_CAP}")
    names = checked(source, columns, person, key)
    if weight.lower() in {name.lower() for name in names}:
        raise ValueError(f'the table has a column "{weight}" already: give the weights another name')
    return all_persons(source, WeighPass(names, person, key, cap, weight), progress=progress)


def person_counts(source: Source, person: str, key: int = 0, *, progress: bool | None = None) -> Integers:
    """How many persons have 1, 2, 3-4, 5-8, ... rows, in ``BINS`` bins. Private: one person moves one bin by 1.

    ``person`` and ``key`` are as in ``keep_rows``; the numbers do not depend on the key. A row without an identifier is
    a person with one row.
    """
    names = checked(source, [person], person, key)
    counted = all_persons(source, CountPass(names, person, key), progress=progress)
    return np.array(gather(counted, BinPass(), progress=False).values(), dtype=np.int64)


@dataclass(frozen=True)
class WeighPass(PersonPass):
    """Gives each row its weight."""

    cap: int = 1
    weight: str = "weight"
    drops = False

    def about(self, frame: Frame, who: Words) -> dict[str, Words]:
        """Nothing."""
        return {}

    def chosen(self, index: pl.DataFrame, parts: list[Frame]) -> pl.DataFrame:
        """All rows, with how many their person has: line 6."""
        counts = np.empty(len(index), dtype=np.int64)

        def count(order: Ordered) -> None:
            sizes = np.diff(np.flatnonzero(order.new_person), append=len(order.rows))
            counts[order.rows] = np.repeat(sizes, sizes)

        by_piece(index, count)
        return index.with_columns(pl.Series(_COUNT, counts))

    def finished(self, frame: Frame, index: pl.DataFrame | None) -> Frame:
        """The rows with their weights."""
        counts = np.ones(len(frame), dtype=np.int64) if index is None else index[_COUNT].to_numpy()
        weights = WEIGHT * np.minimum(counts, self.cap) // counts  # line 7
        return frame.with_columns(nw.new_series(self.weight, weights, nw.Int64(), backend=frame.implementation))

    def types(self, source: Source) -> dict[str, DType]:
        """Whole numbers beside the columns."""
        return {**super().types(source), self.weight: nw.Int64()}

    def spark_fields(self, fields: Any) -> Any:
        """The same in Spark."""
        return super().spark_fields(fields).add(self.weight, "long")


@dataclass(frozen=True)
class CountPass(PersonPass):
    """Counts the rows of each person: one row for each, with its number of rows."""

    def about(self, frame: Frame, who: Words) -> dict[str, Words]:
        """The row itself."""
        return {_COUNT: np.ones(len(who), dtype=np.uint64)}

    def chosen(self, index: pl.DataFrame, parts: list[Frame]) -> pl.DataFrame:
        """One row of each person, with the number of all of its rows: line 8."""
        before, counts = index[_COUNT].to_numpy(), np.zeros(len(index), dtype=np.uint64)

        def count(order: Ordered) -> None:
            firsts = np.flatnonzero(order.new_person)
            if len(firsts):
                counts[order.rows[firsts]] = np.add.reduceat(before[order.rows], firsts)

        by_piece(index, count)
        return index.with_columns(pl.Series(_COUNT, counts)).filter(pl.Series(counts > 0))

    def finished(self, frame: Frame, index: pl.DataFrame | None) -> Frame:
        """The numbers of rows."""
        counts = np.ones(len(frame), dtype=np.int64) if index is None else index[_COUNT].to_numpy().astype(np.int64)
        series = nw.new_series(_COUNT, counts, nw.Int64(), backend=frame.implementation)
        return series.to_frame()

    def types(self, source: Source) -> dict[str, DType]:
        """Whole numbers."""
        return {_COUNT: nw.Int64()}

    def spark_fields(self, fields: Any) -> Any:
        """The same in Spark."""
        return type(fields)([]).add(_COUNT, "long")


@dataclass(frozen=True)
class BinPass(SummingPass[Sums]):
    """Counts numbers of rows by bins."""

    columns: tuple[str, ...] = (_COUNT,)

    def empty(self) -> Sums:
        """No persons."""
        return Sums(BINS)

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Some more persons: one with k rows belongs to the bin of the smallest power of two from k on: line 9."""
        counts = np.asarray(frame.get_column(_COUNT).to_numpy(), dtype=np.int64)
        powers = np.left_shift(1, np.arange(BINS - 1), dtype=np.int64)
        bins = np.searchsorted(powers, counts)
        state.accumulate(np.bincount(bins, minlength=BINS).tolist())
        return state
