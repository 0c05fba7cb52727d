"""What is public about a table: its columns and their bounds, and how a row becomes a vector and back."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.cells import declared, inferred
from snugdp.tables.schema import scaling, toml
from snugdp.tables.schema.kinds import Boolean, Category, Column, DType, Number, described, type_name

__all__ = ["Boolean", "Category", "Coefficients", "Column", "Layout", "Number", "Schema"]
_BITS = 52


@dataclass(frozen=True)
class Coefficients:
    """A linear function in the user's units: ``intercept + sum of value * entry``.

    A number enters as it is, a boolean as 0 or 1, and ``colour=red`` as 1 where the colour is red.

    Parameters
    ----------
    names : tuple of str
        The entries.
    values : ndarray
        One coefficient for each entry.
    intercept : float
        The intercept.

    Examples
    --------
    >>> Schema({"age": Number(0, 120)}).coefficients([0.0, 1.0]).names
    ('age',)
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    intercept: float


class Layout(Protocol):
    """What a pass needs to know of rows: a ``Schema`` for named columns, an ``ArraySchema`` for a matrix. Public."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns that are read, with their bounds or values."""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""

    @property
    def target(self) -> str | None:
        """The column to be predicted."""

    @property
    def target_units(self) -> tuple[float, float]:
        """The middle of the target, and how many of its units a scaled target of 1 is."""

    @property
    def norm(self) -> Real:
        """The norm to which longer rows are shortened."""

    @property
    def intercept(self) -> bool:
        """Whether a constant 1 is the last entry of every vector."""

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare the names and declared types of a table with what is expected."""

    def blocks(self, frame: Any) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """The scaled vectors and targets of some rows, part by part. No value raises or warns."""

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of scaled vectors in the user's units."""


@dataclass(frozen=True, eq=False)
class Schema:
    """Public bounds and values for every column that is used; they must come from outside the data.

    A row becomes a vector of norm at most 1: each of the k columns is scaled to [-1, 1] by its bounds, or to one entry
    of 0 or 1 for every listed value, and divided by the square root of k. Missing entries become 0: the middle of the
    bounds, or no category. The target is scaled to [-1, 1]; for a category see ``tables.schema.scaling``.

    Parameters
    ----------
    columns : mapping of str to Number, Category or Boolean
        The columns by name.
    target : str, optional
        The column to predict.
    intercept : bool, default=True
        Whether a constant 1 is the last entry of every vector.
    norm : Real, default=1
        At most 1; longer rows are shortened to it, exactly, when statistics are taken.

    Examples
    --------
    >>> Schema({"age": Number(0, 120), "city": Category(["Rome", "Oslo"])}).features
    ('age', 'city=Rome', 'city=Oslo', 'intercept')
    """

    columns: Mapping[str, Column]
    target: str | None = None
    intercept: bool = True
    norm: Real = 1

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise TypeError('columns must map names to columns, such as {"age": Number(0, 120)}')
        object.__setattr__(self, "columns", dict(self.columns))
        for name, column in self.columns.items():
            if not isinstance(name, str):
                raise TypeError("the name of a column must be text")
            if not isinstance(column, Number | Category | Boolean):
                raise TypeError(f'column "{name}" must be a Number, a Category or a Boolean')
        if not isinstance(self.intercept, bool):
            raise TypeError("intercept must be True or False")
        if not 0 < rational(self.norm, "norm") <= 1:
            raise ValueError("norm must be greater than 0 and at most 1, the norm that scaling by the bounds gives")
        self._check_target()
        self._check_features()

    def _check_target(self) -> None:
        if self.target is None:
            return
        if self.target not in self.columns:
            raise ValueError(f'the target "{self.target}" is not one of the columns')
        scaling.check_target(self.target, self.columns[self.target])

    def _check_features(self) -> None:
        if not self._used:
            raise ValueError("a schema needs at least one column besides the target")
        names = self.features
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f'two entries of the vector would be called "{doubled[0]}": rename a column')

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        """The order of the columns matters: it is the order of the entries."""
        return tuple(self.columns.items()), self.target, self.intercept, rational(self.norm, "norm")

    @property
    def _used(self) -> dict[str, Column]:
        return {name: column for name, column in self.columns.items() if name != self.target}

    @property
    def _scales(self) -> dict[str, scaling.Scale]:
        """How every column but the target is scaled."""
        return {name: scaling.scale_for(column, len(self._used)) for name, column in self._used.items()}

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last."""
        return (*self._entries, "intercept") if self.intercept else self._entries

    @property
    def _entries(self) -> tuple[str, ...]:
        return tuple(
            entry
            for name, column in self._used.items()
            for entry in ([f"{name}={v}" for v in column.values] if isinstance(column, Category) else [name])
        )

    @property
    def feature_bound(self) -> Fraction:
        """A bound on the norm of a whole vector, with the constant: sqrt(norm² + 1), rounded up (exact as a float)."""
        norm = rational(self.norm, "norm")
        if not self.intercept:
            return norm
        square = (norm**2 + 1) * 4**_BITS
        return Fraction(math.isqrt(math.ceil(square) - 1) + 1, 2**_BITS)

    @property
    def target_bound(self) -> int:
        """A bound on the size of a scaled target."""
        return 1

    @property
    def target_units(self) -> tuple[float, float]:
        """The middle of the target, and how many of its units a scaled target of 1 is."""
        return _units(self.columns[self.target]) if self.target is not None else (0.0, 1.0)

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare the names and declared types of a table with the schema; both are public."""
        for name, column in self.columns.items():
            if name not in types:
                raise ValueError(f'the table has no column "{name}"; it has {_listed(types)}')
            if not column.fits(types[name]):
                raise TypeError(
                    f'column "{name}" is of type {type_name(types[name])}, but the schema says that it holds '
                    f"{described(column)}; change the schema, or convert the column"
                )

    def vectors(self, frame: nw.DataFrame[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """The vectors of all rows, one row each, and the scaled targets (or none). No value raises or warns.

        >>> import pandas as pd
        >>> table = nw.from_native(pd.DataFrame({"age": [30.0, 500.0, None]}), eager_only=True)
        >>> Schema({"age": Number(0, 120)}).vectors(table)[0].tolist()
        [[-0.5, 1.0], [1.0, 1.0], [0.0, 1.0]]
        """
        out = np.empty((len(frame), len(self.features)))
        aim = np.empty(len(frame)) if self.target is not None else None
        at = 0
        for block, answers in self.blocks(frame):
            out[at : at + len(block)] = block
            if aim is not None and answers is not None:
                aim[at : at + len(block)] = answers
            at += len(block)
        return out, aim

    def blocks(self, frame: nw.DataFrame[Any]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """As ``vectors``, some rows at a time: column-major, in the cache, overwritten by the next block."""
        self.check({name: inferred(declared(frame.get_column(name))) for name in frame.columns if name in self.columns})
        target = (self.target, scaling.target_scale(self.columns[self.target])) if self.target is not None else None
        return scaling.blocks(frame, self._scales, self.intercept, target)

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of vectors (one coefficient for every name in ``features``) in the user's units.

        >>> schema = Schema({"age": Number(0, 120), "income": Number(0, 1000)}, target="income")
        >>> schema.coefficients([0.6, 0.1])
        Coefficients(names=('age',), values=array([5.]), intercept=250.0)
        """
        given = np.asarray(theta, dtype=np.float64)
        if given.shape != (len(self.features),):
            raise ValueError(f"theta must have {len(self.features)} entries, one for each of the features")
        used = self._used
        middle, half = self.target_units
        part = scaling.part_of_norm(len(used))
        units = [u for c in used.values() for u in [_units(c)] * (len(c.values) if isinstance(c, Category) else 1)]
        middles, halves = np.array(units).T
        values = half * part * given[: len(units)] / halves
        constant = half * given[-1] if self.intercept else 0.0
        return Coefficients(self._entries, values, float(middle + constant - values @ middles))

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """Read a schema from a file, or from text with more than one line. Errors name the file and the key."""
        where, parts = toml.read(source)
        with toml.named(where):
            return cls(**parts)

    def to_toml(self) -> str:
        """The schema as text that ``from_toml`` reads."""
        return toml.write(self.columns, self.target, self.intercept, self.norm)

    @classmethod
    def from_json(cls, given: Any) -> Schema:
        """The schema that ``to_json`` gave; whatever is wrong with it is a ``ValueError``."""
        try:
            with toml.named("the schema"):
                return cls(**toml.parts_of(given))
        except TypeError as error:
            raise ValueError(str(error)) from None

    def to_json(self) -> dict[str, Any]:
        """The schema as a dict for JSON, with the keys of its TOML form.

        >>> Schema({"age": Number(0, 120)}).to_json()["columns"]
        {'age': {'type': 'number', 'lower': 0, 'upper': 120}}
        """
        if type(self) is not Schema:
            raise TypeError("only a plain snugdp.Schema can be written as JSON")
        return tomllib.loads(self.to_toml())


def _units(column: Column) -> tuple[float, float]:
    """Middle and half width in the user's units: a boolean is 0 or 1, a category is an entry of 0 or 1."""
    if isinstance(column, Number):
        return float(column.middle), float(column.half)
    return (0.5, 0.5) if isinstance(column, Boolean) else (0.0, 1.0)


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    shown = [f'"{name}"' for name in list(names)[:20]]
    return ", ".join(shown) + (", …" if len(names) > 20 else "")
