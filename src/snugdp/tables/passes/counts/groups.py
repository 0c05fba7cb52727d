"""One pass that groups rows by keys and keeps whole numbers for every key: rows, valid cells, sums and squares.

Polars groups; a key is then read cell by cell by the rules of ``keys.py``, once for every distinct cell of a batch.
The numbers are whole, so that parts of a table merge exactly. The line numbers are those of ``groups.proof.md``.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed
from snugdp.tables.cells import numbers, truths
from snugdp.tables.passes.counts.keys import CellColumn, Encoded, KeyColumn
from snugdp.tables.passes.counts.value_counts import ValueCounts

Integers: TypeAlias = NDArray[np.int64]

BITS = 28  # a value between its bounds is a whole number of size at most 2**28, and so is its square
UNIT = 1 << BITS
ROWS = "rows"
_ROW = "row"
_MAX_WAITING_GROUPS = 1 << 20  # groups that wait until they are put together


@dataclass(frozen=True)
class ValueColumn:
    """A column of numbers, or of booleans, as whole multiples of ``half / 2**28`` from the middle of its bounds.

    ``squares``: whether sums of squares are kept.
    """

    name: str
    lower: Fraction
    upper: Fraction
    boolean: bool = False
    squares: bool = False

    @property
    def middle(self) -> Fraction:
        """The middle of the bounds."""
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> Fraction:
        """Half their width."""
        return (self.upper - self.lower) / 2

    def read(self, column: nw.Series[Any]) -> tuple[NDArray[np.bool_], Integers]:
        """Which cells are valid, and every cell as a whole number; 0 for the others. Infinities are clipped."""
        native = column.to_native()
        values = truths(native) if self.boolean else numbers(native)
        valid = ~np.isnan(values)
        with np.errstate(all="ignore"):  # a warning would depend on private values
            scaled = (values - float(self.middle)) * float(UNIT / self.half)  # line 1
            scaled = np.clip(np.rint(scaled, out=scaled), -UNIT, UNIT, out=scaled)
        scaled[~valid] = 0.0
        return valid, scaled.astype(np.int64)


class GroupSums(PrivateState):
    """Whole numbers by key: groups that are put together, and some that wait. Private."""

    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        self.held: pl.DataFrame | None = None
        self.waiting: list[pl.DataFrame] = []

    def add(self, groups: pl.DataFrame, keys: int) -> None:
        """More groups; they are put together once they outnumber those that are."""
        self.waiting.append(groups)
        if sum(map(len, self.waiting)) > _MAX_WAITING_GROUPS + (0 if self.held is None else len(self.held)):
            self.together(keys)

    def together(self, keys: int) -> pl.DataFrame | None:
        """Every key once, with the sums over all groups; nothing if there are no groups."""
        parts = [*(() if self.held is None else (self.held,)), *self.waiting]
        if self.waiting:
            joined = pl.concat(parts)
            names = joined.columns
            self.held = joined.group_by(names[:keys]).agg(pl.col(names[keys:]).sum())  # line 4
            self.waiting = []
        return self.held


class Keys(Sequence[tuple[Encoded, ...]]):
    """The keys of all groups in their canonical order, as they are encoded. Private."""

    def __init__(self, columns: pl.DataFrame) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, place: Any) -> Any:
        return self._columns.row(place)

    def __iter__(self) -> Iterator[tuple[Encoded, ...]]:
        return self._columns.iter_rows()

    def __repr__(self) -> str:
        return "<private keys>"


@dataclass(frozen=True)
class GroupPass:
    """Groups rows by key columns. ``most``: for how many keys a row counts, where a column holds lists of them.

    ``missing``: whether rows without a key are a group; otherwise they are dropped.

    Guarantee: what a row adds is a function of that row and of public values alone, to at most ``most`` groups; the
    order of the keys is a function of their set (``groups.proof.md``, Theorem 1).
    """

    keys: tuple[KeyColumn | CellColumn, ...]
    values: tuple[ValueColumn, ...] = ()
    most: int = 1
    missing: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys([*(key.name for key in self.keys), *(value.name for value in self.values)]))

    def empty(self) -> GroupSums:
        """No rows."""
        return GroupSums()

    def fold(self, state: GroupSums, frame: nw.DataFrame[Any]) -> GroupSums:
        """Some more rows."""
        if len(frame):
            state.add(self._groups(frame), len(self.keys))
        return state

    def merge(self, one: GroupSums, other: GroupSums) -> GroupSums:
        """The sums of both parts."""
        groups = other.together(len(self.keys))
        if groups is not None:
            one.add(groups, len(self.keys))
        return one

    def pack(self, state: GroupSums) -> bytes:
        """All keys and whole numbers."""
        groups, packed = state.together(len(self.keys)), io.BytesIO()
        if groups is not None:
            groups.write_ipc(packed)
        return sealed(packed.getvalue())

    def unpack(self, packed: bytes) -> GroupSums:
        """The sums that were packed."""
        state, body = self.empty(), unsealed(packed)
        if body:
            state.add(pl.read_ipc(io.BytesIO(body)), len(self.keys))
        return state

    def _groups(self, frame: nw.DataFrame[Any]) -> pl.DataFrame:
        """Every key of these rows, and the sums."""
        names = [f"key{place}" for place in range(len(self.keys))]
        table = pl.DataFrame({name: key.raw(frame.get_column(key.name)) for name, key in self._named(names)})
        sums = []
        for place, value in enumerate(self.values):
            valid, whole = value.read(frame.get_column(value.name))
            columns = {f"n{place}": valid.astype(np.int64), f"s{place}": whole}
            if value.squares:
                columns[f"q{place}"] = (whole * whole) >> BITS  # line 2
            table = table.with_columns(**{name: pl.Series(column) for name, column in columns.items()})
            sums += list(columns)
        if any(key.lists for key in self.keys):
            table = self._spread(table, names)
        grouped = table.group_by(names).agg(pl.len().cast(pl.Int64).alias(ROWS), pl.col(sums).sum())  # line 3
        single = ((name, key) for name, key in self._named(names) if not key.lists)  # lists were encoded to be spread
        grouped = grouped.with_columns(**{name: key.encoded(grouped[name]) for name, key in single})
        return grouped if self.missing else grouped.drop_nulls(names)

    def _named(self, names: Sequence[str]) -> Iterator[tuple[str, KeyColumn | CellColumn]]:
        return zip(names, self.keys, strict=True)

    def _spread(self, table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
        """One line for each of the first ``most`` distinct keys of every row, in the order of their encoding."""
        table = table.with_row_index(_ROW)
        for name, key in self._named(names):
            if key.lists:
                some = pl.when(pl.col(name).list.len() > 0).then(pl.col(name))  # an empty list is a missing key
                table = table.with_columns(some.alias(name)).explode(name)
                table = table.with_columns(**{name: key.encoded(table[name])})
        if not self.missing:
            table = table.drop_nulls(names)
        table = table.unique([_ROW, *names]).sort([_ROW, *names])
        place = pl.int_range(pl.len()).over(_ROW)
        return table.filter(place < self.most).drop(_ROW)

    def counts(self, state: GroupSums) -> tuple[Keys, Integers]:
        """Every key that is there, in canonical order, and its number of rows."""
        groups = self._ordered(state)
        return Keys(groups.select(groups.columns[: len(self.keys)])), groups[ROWS].to_numpy().astype(np.int64)

    def _ordered(self, state: GroupSums) -> pl.DataFrame:
        groups = state.together(len(self.keys))
        if groups is None:
            names = [f"key{place}" for place in range(len(self.keys))]
            return pl.DataFrame(schema={**dict.fromkeys(names, pl.String), **dict.fromkeys(self.sums, pl.Int64)})
        return groups.sort(groups.columns[: len(self.keys)])  # line 5

    @property
    def sums(self) -> tuple[str, ...]:
        """The names of the numbers of a group: rows, then valid cells, sums and squares of every value column."""
        named = [(f"n{i}", f"s{i}", *((f"q{i}",) if value.squares else ())) for i, value in enumerate(self.values)]
        return (ROWS, *(name for names in named for name in names))

    def at(self, state: GroupSums, keys: Sequence[tuple[Encoded, ...]]) -> dict[str, Integers]:
        """The numbers of these keys, which are public, in their order; 0 for those that are not there."""
        groups = state.together(len(self.keys))
        if groups is None or not keys:
            return {name: np.zeros(len(keys), dtype=np.int64) for name in self.sums}
        names = groups.columns[: len(self.keys)]
        wanted = pl.DataFrame(list(keys), schema={name: groups.schema[name] for name in names}, orient="row")
        found = wanted.join(groups, on=names, how="left", nulls_equal=True, maintain_order="left").fill_null(0)
        return {name: found[name].to_numpy().astype(np.int64) for name in self.sums}

    def cells(self, state: GroupSums, keys: Sequence[tuple[Encoded, ...]]) -> list[ValueCounts]:
        """The cells of these keys, which are public: where the last of the key columns is a ``CellColumn``."""
        groups, places = state.together(len(self.keys)), np.arange(len(keys) + 1)
        if groups is None or not keys:
            return [ValueCounts.of(np.empty(0, dtype=np.int64)) for _ in keys]
        *names, cell = groups.columns[: len(self.keys)]
        wanted = pl.DataFrame(list(keys), schema={name: groups.schema[name] for name in names}, orient="row")
        found = wanted.with_row_index(_ROW).join(groups.drop_nulls(cell), on=names, nulls_equal=True).sort(_ROW, cell)
        ends = np.searchsorted(found[_ROW].to_numpy(), places).tolist()
        values, counts = (found[name].to_numpy().astype(np.int64) for name in (cell, ROWS))
        return [ValueCounts(values[a:b], counts[a:b]) for a, b in itertools.pairwise(ends)]
