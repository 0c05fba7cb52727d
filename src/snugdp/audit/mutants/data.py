"""Rows that are read wrongly: bounds that do not bind, rows that are dropped, sums that are not exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

from snugdp.audit.mutants.base import Changes, Topic
from snugdp.audit.mutants.checks import Near
from snugdp.audit.mutants.vectors import Vector
from snugdp.queries import robust
from snugdp.tables import rowmap
from snugdp.tables.cells import Names, columns
from snugdp.tables.limits import Limits
from snugdp.tables.passes.sums import Sums
from snugdp.tables.rowmap import Floats, RowMap
from snugdp.tables.schema.scaling import Affine

mutant = Topic("data")
_HARMLESS = (
    "the last integer check of the row map (line 5) sets to 0 what rounding puts above the bound, so truncation and "
    "rounding to nearest both keep every bound: the change is harmless as long as that line stands; without that line "
    "it is the mutant 'bound with a tolerance', which is caught"
)
_FIT = Near("linear: adassp", 2, 40)


@mutant("rows not shortened", "N", _FIT)
def _() -> Changes:
    """Rows beyond their bound go into X'X as they are, but for a bound far away."""

    def far(self: RowMap, V: Floats, W: Floats, norms: Floats) -> None:
        np.clip(V, -1e7, 1e7, out=V)
        np.copyto(V, 0.0, where=np.isnan(V))

    return [(RowMap, "_shorten", far)]


@mutant("clip entry by entry", "N", _FIT)
def _() -> Changes:
    """Every entry is clipped to the bound that is meant for the norm of the row."""

    def entries(self: RowMap, V: Floats, W: Floats, norms: Floats) -> None:
        limit = math.sqrt(self.norm_squared)
        np.clip(V, -limit, limit, out=V)
        np.trunc(V, out=V)
        np.copyto(V, 0.0, where=np.isnan(V))

    return [(RowMap, "_shorten", entries)]


@mutant("bound with a tolerance", "N", Near("linear: adassp", 2, 120))
def _() -> Changes:
    """Rows are shortened in floats to a millionth above their bound, and not checked again."""

    def nearly(self: RowMap, V: Floats, W: Floats, norms: Floats) -> None:
        np.clip(V, -float(self.entry_limit), float(self.entry_limit), out=V)
        np.copyto(V, 0.0, where=np.isnan(V))
        norms = self._norms(V, W)
        root = math.sqrt(self.norm_squared) * (1 + 1e-5)
        V *= np.where(norms > self.norm_squared, root / np.sqrt(norms), 1.0)[:, None]
        np.rint(V, out=V)

    return [(RowMap, "_shorten", nearly)]


@mutant("targets not clipped", "N", _FIT)
def _() -> Changes:
    """Targets beyond their bound are used as they are, but for a bound far away: both clips are gone."""

    def far(self: RowMap, y: Any, w: Floats) -> None:
        np.multiply(y, math.ldexp(1.0, self.bits), out=w, dtype=np.float64)
        np.clip(w, -1e7, 1e7, out=w)
        np.trunc(w, out=w)
        np.copyto(w, 0.0, where=np.isnan(w))

    def write(self: Affine, raw: Any, out: Floats) -> None:
        np.clip((np.asarray(raw, dtype=np.float64) - self.middle) * self.factor, -1e7, 1e7, out=out[0])
        np.copyto(out[0], 0.0, where=np.isnan(out[0]))

    return [(RowMap, "_map_target", far), (Affine, "write", write)]


@mutant("centred by the private mean", "N", _FIT)
def _() -> Changes:
    """The mean of the rows is taken off every one of them before the bound."""
    blocks = RowMap.blocks

    def centred(self: RowMap, X: Any, y: Any, rows: int | None = None) -> Iterator[Any]:
        with np.errstate(all="ignore"):
            table = np.clip(np.nan_to_num(np.asarray(X, dtype=np.float64)), -10, 10)
        return blocks(self, table - table.mean(axis=0) if len(table) else table, y, rows)

    return [(RowMap, "blocks", centred)]


@mutant("scaled by the largest row", "N", _FIT)
def _() -> Changes:
    """All rows are divided by the largest norm among them, which is somebody's."""
    blocks = RowMap.blocks

    def scaled(self: RowMap, X: Any, y: Any, rows: int | None = None) -> Iterator[Any]:
        with np.errstate(all="ignore"):
            table = np.clip(np.nan_to_num(np.asarray(X, dtype=np.float64)), -10, 10)
            largest = np.sqrt((table**2).sum(axis=1).max()) if len(table) else 1.0
        return blocks(self, table / max(float(largest), 1e-9), y, rows)

    return [(RowMap, "blocks", scaled)]


@mutant("rows that are no numbers dropped", "N", Near("quantile", 2, 60))
def _() -> Changes:
    """Rows that are no numbers are dropped where the number of rows is public."""
    numbers = columns.numbers

    def kept(data: object) -> Any:
        found = numbers(data)
        return found[~np.isnan(found)]

    return [(robust, "numbers", kept)]


@mutant("one row promotes the others", "N", Near("mode", 2, 400))
def _() -> Changes:
    """A column with a number in it becomes a column of numbers: one row changes what all others are."""
    counts = Names.counts

    def promoted(self: Names, data: Any) -> Any:
        numeric = any(isinstance(row, float) for row in data)
        return counts(self, [None] * len(data) if numeric else data)

    return [(Names, "counts", promoted)]


@mutant("block beyond exact floats", "X", Vector("moments"))
def _() -> Changes:
    """Twice as many rows are summed in floats as are exact."""
    return [(Limits, "rows_per_block", property(lambda self: (1 << 54) // self.largest_product))]


@mutant("64 bits without a spill", "X", Vector("moments"))
def _() -> Changes:
    """Sums stay in 64 bits however many rows there are, and wrap around."""

    def reserve(self: Sums, bound: int) -> Any:
        return plain(self, 0)

    plain = Sums.reserve
    return [(Sums, "reserve", reserve)]


@mutant("rounding for truncation", "N", Near("linear: adassp", 2, 120), known=_HARMLESS)
def _() -> Changes:
    """Shortened rows are rounded to the nearest cell and not towards 0; the last check of the norm stays."""

    class Rounding:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, "rint" if name == "trunc" else name)

    shorten = RowMap._shorten

    def rounded(self: RowMap, *given: Any) -> None:
        with mock.patch.object(rowmap, "np", Rounding()):
            shorten(self, *given)

    return [(RowMap, "_shorten", rounded)]
