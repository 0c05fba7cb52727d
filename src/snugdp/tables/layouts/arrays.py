"""A matrix and its targets as a table: rows without column names, under a bound on their norm instead of a schema.

Every row has an image that depends on that row alone, as in ``cells/``: rows of objects and of lists are read cell
by cell, never by what all cells have in common. Arrays of numbers are read in place. First comes what layouts have in
common: those of matrices of numbers, and those that read the rows of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real, rational
from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.cells import numbers, type_name
from snugdp.tables.cells.rows import is_sparse
from snugdp.tables.schema.kinds import Column, DType, Number
from snugdp.tables.schema.scaling import Affine, Floats, floats, not_numbers, present, scale_for
from snugdp.tables.schema.schema import Coefficients, Layout
from snugdp.tables.sources.base import Batch, Frame, Source, UndividedSource, step
from snugdp.tables.sources.sparse import SparseBlock, read_matrix

if TYPE_CHECKING:
    import polars as pl

MAX_BLOCK_CELLS = 1 << 20
_MAX_BOUND = Fraction(10**290)
Targets: TypeAlias = "NDArray[Any] | nw.Series[Any]"  # numbers, or labels as text


class WrappedLayout:
    """A layout with the columns, the target and the constant of another one. ``layout`` is a field of the subclass."""

    layout: Layout

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns that are read, with their bounds or values."""
        return self.layout.columns

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        return self.layout.features

    @property
    def target(self) -> str | None:
        """The column to be predicted."""
        return self.layout.target

    @property
    def target_units(self) -> tuple[float, float]:
        """The middle of the target, and how many of its units a scaled target of 1 is."""
        return self.layout.target_units

    @property
    def intercept(self) -> bool:
        """Whether a constant 1 is the last entry of every vector."""
        return self.layout.intercept

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare the names and declared types of a table with what is expected."""
        self.layout.check(types)


class NumberLayout:
    """Columns of numbers and a bounded number as the target. The annotated names are fields of the subclass."""

    names: tuple[str, ...]
    y_bound: Real | tuple[Real, ...]
    intercept: bool
    norm = 1

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        return (*self.names, "intercept") if self.intercept else self.names

    @property
    def spans(self) -> dict[str, slice]:
        """Where the entry of every column is in a vector."""
        return {name: slice(place, place + 1) for place, name in enumerate(self.names)}

    @cached_property
    def target(self) -> str:
        """A name for the target that no column has."""
        name = "y"
        while name in self.names:
            name += "_"
        return name

    @cached_property
    def aim(self) -> Number:
        """The bounds of the target."""
        if isinstance(self.y_bound, tuple | list | np.ndarray):
            if len(self.y_bound) != 2:
                raise ValueError("y_bound must be a number b, for targets in [-b, b], or a pair (low, high)")
            return Number(*self.y_bound)
        bound = rational(self.y_bound, "y_bound")
        if bound <= 0:
            raise ValueError("y_bound must be greater than 0, or a pair (low, high)")
        return Number(-bound, bound)

    @property
    def target_units(self) -> tuple[float, float]:
        """The middle of the target, and how many of its units a scaled target of 1 is."""
        return float(self.aim.middle), float(self.aim.half)

    @property
    def entry(self) -> Number:
        """The bounds that messages and engines see for every entry."""
        return Number(-1, 1)

    def per_entry(self, half: float) -> Floats | float:
        """A coefficient of 1, if a scaled target of 1 is ``half`` units, for entries in the user's units."""
        raise NotImplementedError

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """All columns, the target last."""
        return {**dict.fromkeys(self.names, self.entry), self.target: self.aim}

    def check(self, types: Mapping[str, DType]) -> None:
        """Whether all columns hold numbers, by their declared types."""
        for name, column in self.columns.items():
            if name in types and not column.fits(types[name]):
                raise TypeError(
                    f'column "{name}" must hold numbers, not {type_name(types[name])}; convert it, or describe the '
                    "table by a schema"
                )

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of scaled rows (one coefficient for every name in ``features``) in the user's units."""
        given, (middle, half) = one_for_each(theta, self.features), self.target_units
        constant = half * given[-1] if self.intercept else 0.0
        return Coefficients(self.names, self.per_entry(half) * given[: len(self.names)], float(middle + constant))


class Block(PrivateState):
    """Some rows of a matrix and their targets. Private.

    ``places``: of the columns by their names, for passes that read one by one; the target is behind the last.
    """

    __slots__ = ("X", "_places", "y")

    def __init__(
        self, X: NDArray[Any] | SparseBlock, y: Targets | None, places: Mapping[str, int] | None = None
    ) -> None:
        self.X, self.y, self._places = X, y, places or {}

    def __len__(self) -> int:  # type: ignore[override]  # engines look how large it is
        return len(self.X)

    def get_column(self, name: str) -> Targets:
        """One column, or the target."""
        place = self._places[name]
        if place < self.X.shape[1]:
            column: NDArray[Any] = self._dense()[:, place]
            return column
        if self.y is None:
            raise KeyError(name)
        return self.y

    def with_targets(self) -> Block:
        """The rows that have a target; all of them where there are no targets. Labels are for other layouts."""
        y = self.y if isinstance(self.y, np.ndarray) else None
        kept = None if y is None else present([not_numbers(y)])
        return self if kept is None or y is None else Block(self._dense()[kept], y[kept], self._places)

    def _dense(self) -> NDArray[Any]:
        if not isinstance(self.X, np.ndarray):
            self.X = self.X[:]  # once for all columns
        return self.X


@dataclass(frozen=True)
class ArraySchema(NumberLayout):
    """What is public about a matrix: its columns, a bound on the norm of a row, and bounds on the target.

    ``x_norm``: rows are divided by it, and longer ones are shortened to norm 1 when statistics are taken. ``y_bound``:
    b for targets in [-b, b], or (low, high); the target is scaled to [-1, 1]. A missing value in a row counts as 0; a
    row without a target is left out.

    >>> ArraySchema(("x0", "x1"), x_norm=5, y_bound=10).features
    ('x0', 'x1', 'intercept')
    >>> ArraySchema(("x0",), x_norm=5, y_bound=(0, 20)).coefficients([0.5, 0.1])
    Coefficients(names=('x0',), values=array([1.]), intercept=11.0)
    """

    names: tuple[str, ...]
    x_norm: Real
    y_bound: Real | tuple[Real, ...]
    intercept: bool = True

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("the rows have no entries: 0 features, while a minimum of 1 is required")
        if not isinstance(self.intercept, bool | np.bool_):
            raise TypeError("fit_intercept must be True or False")
        if not is_bound(self.x_norm, "x_norm"):
            raise ValueError("x_norm, the bound on the norm of a row, must be greater than 0 and at most 1e290")
        self.aim  # noqa: B018  # invalid bounds on the target are refused here

    @property
    def entry(self) -> Number:
        """No entry of a row exceeds the norm."""
        bound = rational(self.x_norm, "x_norm")
        return Number(-bound, bound)

    def per_entry(self, half: float) -> float:
        """A coefficient of 1 for entries in the user's units."""
        return half * self._factor

    @cached_property
    def _factor(self) -> float:
        return float(1 / rational(self.x_norm, "x_norm"))

    @cached_property
    def _scale(self) -> Affine:
        return cast(Affine, scale_for(self.aim, 1))

    def blocks(self, frame: Any) -> Iterator[tuple[Floats, Floats | None]]:
        """The scaled rows of a block of a matrix, or of a frame, some at a time; overwritten by the next ones."""
        raw, y, size = _opened(frame, self)
        width = len(self.names)
        rows = min(size, max(1024, MAX_BLOCK_CELLS // (width + 1)))
        buffer = np.empty((rows, width + self.intercept), order="F")  # by column: faster in the row map
        buffer[:, width:] = 1.0
        answers = np.empty((1, rows))
        for start in range(0, size, max(rows, 1)):
            part = slice(start, min(start + rows, size))
            out, aims = buffer[: part.stop - start], answers[:, : part.stop - start]
            with np.errstate(all="ignore"):  # a warning would depend on private values
                self._write(raw, part, out[:, :width])
                if y is not None:
                    self._scale.write(y[part], aims)
            yield out, None if y is None else aims[0]

    def _write(self, raw: NDArray[Any] | SparseBlock | list[Floats], part: slice, out: Floats) -> None:
        if isinstance(raw, list):
            for place, column in enumerate(raw):
                np.multiply(column[part], self._factor, out=out[:, place], dtype=np.float64)
        else:
            np.multiply(raw[part], self._factor, out=out, dtype=np.float64)


def columns_of(frame: Any, layout: NumberLayout) -> tuple[list[Floats], Floats | None, int]:
    """The columns, the targets if there are any, and the number of rows; those without a target are left out."""
    raw, size = [floats(frame.get_column(name)) for name in layout.names], len(frame)
    if layout.target not in frame.columns:
        return raw, None, size
    y = floats(frame.get_column(layout.target))
    kept = present([not_numbers(y)])
    return (raw, y, size) if kept is None else ([column[kept] for column in raw], y[kept], int(np.count_nonzero(kept)))


def _opened(frame: Any, layout: NumberLayout) -> tuple[NDArray[Any] | SparseBlock | list[Floats], Floats | None, int]:
    if not isinstance(frame, Block):
        return columns_of(frame, layout)
    rows = frame.with_targets()
    return rows.X, rows.y if isinstance(rows.y, np.ndarray) else None, len(rows)


def one_for_each(theta: ArrayLike, features: tuple[str, ...]) -> Floats:
    """The coefficients, one for each of the features."""
    given = np.asarray(theta, dtype=np.float64)
    if given.shape != (len(features),):
        raise ValueError(f"theta must have {len(features)} entries, one for each of the features")
    return given


def is_bound(value: Real, name: str) -> bool:
    """Whether a bound is above 0 and far from where floats end."""
    return 1 / _MAX_BOUND < rational(value, name) < _MAX_BOUND


class ArraySource(UndividedSource):
    """A matrix and its targets in memory, in blocks of rows that share its memory; those of a sparse one are dense.

    ``y``: numbers, or labels as ``label_texts`` reads them.

    Guarantee: what is raised depends on shapes and declared types alone; that X and y have different lengths is a
    mistake of the program, and public.
    """

    name, held = "the array", True

    def __init__(self, X: object, y: object, schema: NumberLayout) -> None:
        self._open(X, y if isinstance(y, nw.Series) else vector(y), schema)

    def _open(self, X: object, y: Targets | None, schema: NumberLayout) -> None:
        self._X, self._y = read_matrix(X), y
        self.types: dict[str, DType] = dict.fromkeys(schema.columns, nw.Float64())  # numbers, whatever their width
        if isinstance(y, nw.Series):
            self.types[str(schema.target)] = y.dtype
        self._places = {name: place for place, name in enumerate(schema.columns)}
        if self._X.shape[1] != len(schema.names):
            raise ValueError(f"the rows have {self._X.shape[1]} entries, but {len(schema.names)} are expected")
        if y is not None:
            same_length(self._X, y)

    def is_empty(self) -> bool:
        """Whether there are no rows. Private, except in a rehearsal."""
        return not len(self._X)

    def framed(self, name: str, values: pl.Series) -> Source:
        """The same rows as a table, with one more column of values that were given beside them."""
        import polars as pl  # only for those who need it

        from snugdp.tables.sources import open_source

        if isinstance(self._X, SparseBlock):
            raise TypeError("a sparse matrix cannot have more columns: give a dense one, as X.toarray() makes it")
        if len(self._X) != len(values):
            raise ValueError(f"X and {name} have inconsistent numbers of rows: give one for every row")
        dense = np.asarray(self._X[:], dtype=np.float64)
        target = self._y.to_polars() if isinstance(self._y, nw.Series) else self._y
        columns = {key: dense[:, at] if at < dense.shape[1] else target for key, at in self._places.items()}
        held = {key: column for key, column in columns.items() if column is not None}
        return open_source(pl.DataFrame({**held, name: values}))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Blocks of rows. Engines hand them on; only the layouts of matrices look inside."""
        size = step(self._X.shape[1])
        for start in range(0, len(self._X), size):
            part = slice(start, start + size)
            yield Batch(cast(Frame, Block(self._X[part], None if self._y is None else self._y[part], self._places)))


def same_length(X: Sized, y: Sized) -> None:
    """An error that names no length."""
    if len(X) != len(y):
        raise ValueError("X and y have inconsistent numbers of rows: give one target for every row")


def vector(y: object) -> Floats:
    """The targets as floats; what is not a number is NaN."""
    if is_sparse(y):
        raise TypeError("a sparse target is not supported: give a dense array, as y.toarray() makes it")
    if not (isinstance(y, list | tuple) or hasattr(y, "dtype") or hasattr(y, "type")) and hasattr(y, "__array__"):
        y = np.asarray(y)
    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: give real numbers")
    return numbers(y)
