"""One pass for a look at many columns: how many of their cells lie in each doubling, or in each bin of a range.

The place of a cell is a function of that cell and of public or released numbers alone: the bits of a float, or
operations that are rounded correctly one by one. So it is the same in every container and on every engine. Counts
are whole numbers: any order and any partition of the rows gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.tables.cells import inferred, numeric, type_name
from snugdp.tables.passes.base import SummingPass, Sums
from snugdp.tables.schema.kinds import DType
from snugdp.tables.schema.scaling import floats

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Reader: TypeAlias = Callable[[nw.Series[Any]], NDArray[Any]]
End: TypeAlias = float | None

LOWEST, HIGHEST = -20, 60  # of the exponents: smaller numbers are near 0, and larger ones far away
NEAR = HIGHEST - LOWEST + 1  # the doubling around 0; as many lie on each side
FAR = 2 * NEAR
MISSING = FAR + 1
BINS = 32  # of a range

_BIAS, _KEYS, _FRACTION_BITS = 1023, 1 << 12, 52
_ODD = 0x7FF  # the exponent of infinities, and of what is no number
_ROWS = 1 << 15  # at a time, so that they stay in the cache


def _doubling_of_keys() -> Integers:
    """For the sign and the exponent of a float, the first twelve bits, its doubling; infinities are far away."""
    keys = np.arange(_KEYS)
    exponent = (keys & _ODD) - _BIAS
    distance = np.clip(exponent - LOWEST + 1, 0, NEAR)
    places: Integers = NEAR + np.where(keys > _ODD, -distance, distance)
    return places


_DOUBLINGS = _doubling_of_keys()


def doubling(values: Floats) -> Integers:
    """The place of each number among ``Doublings``; infinities are far away.

    >>> doubling(np.array([0.0, 1.0, -1.0, np.inf])).tolist()
    [81, 102, 60, 162]
    """
    return _DOUBLINGS[_keys(values)]


def _keys(values: Floats) -> Integers:
    """The sign and the exponent."""
    return (values.view(np.int64) >> _FRACTION_BITS) & (_KEYS - 1)


@dataclass(frozen=True)
class Doublings:
    """All numbers by sign and power of 2: 0 for ``x <= -2**60``, 81 for ``|x| < 2**-20``, 162 for ``x >= 2**60``.

    Between them ``-2**(k+1) < x <= -2**k`` or ``2**k <= x < 2**(k+1)``; 163 is for what is no number.

    >>> Doublings().tally(np.array([0.0, 1.0, 1.9, -np.inf, np.nan]))[[0, 81, 102, 163]]
    array([1, 1, 2, 1])
    """

    size = MISSING + 1

    def tally(self, values: Floats) -> Integers:
        """How many cells lie in each."""
        by_key = np.bincount(_keys(values), minlength=_KEYS)
        counts = np.bincount(_DOUBLINGS, by_key, minlength=self.size).astype(np.int64)  # sums of few whole numbers
        if by_key[_ODD] or by_key[-1]:
            missing = np.isnan(values)
            negative = int(np.count_nonzero(missing & np.signbit(values)))
            counts[MISSING] = np.count_nonzero(missing)
            counts[0] -= negative
            counts[FAR] -= counts[MISSING] - negative
        return counts


@dataclass(frozen=True)
class EqualBins:
    """Bins of equal width from ``lower`` to ``upper``, both included. What lies outside or is missing is in none.

    >>> EqualBins(0.0, 64.0).tally(np.array([0.0, 3.9, 64.0, 64.1, np.nan]))[[0, 1, 31]]
    array([1, 1, 1])
    """

    lower: float
    upper: float
    size = BINS

    def __post_init__(self) -> None:
        if not 0 < self._factor < math.inf:
            raise ValueError("bins need two ends that are not too close to each other")

    @property
    def _factor(self) -> float:
        width = self.upper - self.lower
        return BINS / width if width else math.inf

    def tally(self, values: Floats) -> Integers:
        """How many cells lie in each."""
        inside = (values >= self.lower) & (values <= self.upper)
        place = (values[inside] - self.lower) * self._factor  # at least 0, as rounding keeps the order
        return np.bincount(np.minimum(place.astype(np.int64), BINS - 1), minlength=BINS)


@dataclass(frozen=True)
class LookedAt:
    """A column and its places. ``ends``: public bounds, where there are any: numbers beyond them count as them.

    ``read``: the column as floats.
    """

    name: str
    places: Doublings | EqualBins = Doublings()
    ends: tuple[End, End] = (None, None)
    read: Reader = floats

    def tally(self, column: Any) -> Integers:
        """How many of its cells lie in each place; a column of a matrix is an array already."""
        values = column if isinstance(column, np.ndarray) else self.read(column)
        counts = np.zeros(self.places.size, dtype=np.int64)
        for start in range(0, len(values), _ROWS):
            part = np.ascontiguousarray(values[start : start + _ROWS], dtype=np.float64)
            counts += self.places.tally(part if self.ends == (None, None) else np.clip(part, *self.ends))
        return counts


@dataclass(frozen=True)
class LookTypes:
    """What columns are looked at: whether they can be read is known before a row is."""

    columns: tuple[LookedAt, ...]

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare with the declared types of a table; who reads other types checks them."""
        for column in self.columns:
            if column.read is floats and not numeric(inferred(types[column.name])):  # text may spell numbers
                kind = type_name(types[column.name])
                raise TypeError(f'column "{column.name}" must hold numbers, not {kind}; convert it first')


@dataclass(frozen=True)
class LookPass(SummingPass[Sums]):
    """The counts of all columns, and how many rows there are.

    Guarantee: in each of the columns a row is in at most one place, and in exactly one among doublings; which one
    depends on its cell and on public or released numbers alone (``mechanisms/bounds/looks/looks.proof.md``, Lemma 1).

    >>> import polars as pl
    >>> work = LookPass((LookedAt("age", EqualBins(0.0, 32.0)),))
    >>> frame = nw.from_native(pl.DataFrame({"age": [1.5, 2.5, 2.6, None, 700.0]}), eager_only=True)
    >>> state = work.fold(work.empty(), frame)
    >>> work.counts(state)[:, :4], work.rows(state)
    (array([[0, 1, 2, 0]]), 5)
    """

    looked_at: tuple[LookedAt, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(column.name for column in self.looked_at)

    @property
    def schema(self) -> LookTypes:
        """The types that they must have."""
        return LookTypes(self.looked_at)

    @cached_property
    def _starts(self) -> Integers:
        return np.cumsum([0, *(column.places.size for column in self.looked_at)])

    def empty(self) -> Sums:
        """No rows."""
        return Sums(int(self._starts[-1]) + 1, width=8)

    def fold(self, state: Sums, frame: nw.DataFrame[Any]) -> Sums:
        """Some more rows, of a frame or of a matrix."""
        sums = state.reserve(len(frame))
        with np.errstate(all="ignore"):  # a warning would depend on private values
            for start, column in zip(self._starts, self.looked_at, strict=False):
                sums[start : start + column.places.size] += column.tally(frame.get_column(column.name))
        sums[-1] += len(frame)
        return state

    def counts(self, state: Sums) -> Integers:
        """One row of counts for every column, where all have as many places."""
        size = self.looked_at[0].places.size if self.looked_at else 0
        return np.array(state.values()[:-1], dtype=np.int64).reshape(len(self.looked_at), size)

    def rows(self, state: Sums) -> int:
        """How many rows there are. Private."""
        return state.values()[-1]
