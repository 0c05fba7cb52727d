"""What is public about a table: its columns and their bounds, and how a row becomes a vector and back."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from snugdp.numerics.rationals import Real, rational
from snugdp.tables.cells import declared_types, inferred, type_name
from snugdp.tables.keyed import EqualByKey
from snugdp.tables.schema import missing as gaps
from snugdp.tables.schema import scaling, toml
from snugdp.tables.schema.hats import curve_images
from snugdp.tables.schema.kinds import Boolean, Category, Column, Date, DType, Number, Spline, described

__all__ = ["Boolean", "Category", "Coefficients", "Column", "Date", "Layout", "Number", "Schema", "Spline"]
_BITS = 52


@dataclass(frozen=True)
class Coefficients:
    """A linear function in the user's units: ``intercept + sum of value * entry``.

    A number enters as it is, a boolean as 0 or 1, and ``colour=red`` as 1 where the colour is red. A number that is
    missing enters as the middle of its bounds, and ``age is missing`` as 1 where the age is missing.

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

    def contrast(self, weights: Mapping[str, float]) -> float:
        """A linear function of the coefficients, such as {"city=Oslo": 1, "city=Rome": -1}. It costs nothing.

        Parameters
        ----------
        weights : mapping
            The weight of each coefficient by its name; "intercept" is one of them.

        Examples
        --------
        >>> found = Coefficients(("city=Oslo", "city=Rome"), np.array([3.0, 1.0]), 5.0)
        >>> found.contrast({"city=Oslo": 1, "city=Rome": -1})
        2.0
        """
        known = {**dict(zip(self.names, self.values.tolist(), strict=True)), "intercept": float(self.intercept)}
        if not weights or any(name not in known for name in weights):
            raise ValueError(f"give weights of {', '.join(known)}")
        return math.fsum(float(weight) * known[name] for name, weight in weights.items())


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
        """The scaled vectors and targets of rows that have a target, part by part. No value raises or warns."""

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of scaled vectors in the user's units."""


@dataclass(frozen=True, eq=False)
class Schema(EqualByKey):
    """What is public about every column that is used; bounds and values must come from outside the data.

    A row becomes a vector of norm at most 1: each of the k columns is scaled to [-1, 1] by its bounds, or to one entry
    of 0 or 1 for every listed value, and divided by the square root of k. A part of a date, such as its month, counts
    as one more column. The target is scaled to [-1, 1]; for a category see ``tables.schema.scaling``. Rows without a
    target (no number, or none of the listed values) are left out of a fit; how many, nobody learns.

    A schema is *open* where bounds or values are left out, as in ``Number()``: a fit finds them privately. Until then
    its rows have no vectors.

    Parameters
    ----------
    columns : mapping of str to Number, Category, Boolean or Date
        The columns by name.
    target : str, optional
        The column to predict.
    intercept : bool, default=True
        Whether a constant 1 is the last entry of every vector.
    norm : Real, default=1
        At most 1; longer rows are shortened to it, exactly, when statistics are taken.
    missing : {"centre", "drop", "indicator"} or mapping, default="centre"
        What a missing cell does, for all columns or by name; the target is not among them. "centre": it counts as the
        middle of the bounds, or as none of the listed values. "drop": the row is left out of a fit; a prediction
        centres it. "indicator": as "centre", and an entry ``age is missing`` is 1 there. What is not one of the listed
        values is not missing.
    person : str, optional
        The column that says whose rows belong together, such as "customer_id". It is not among ``columns``: what uses
        the schema protects persons, whatever the number of their rows.

    Examples
    --------
    >>> Schema({"age": Number(0, 120), "city": Category(["Rome", "Oslo"])}).features
    ('age', 'city=Rome', 'city=Oslo', 'intercept')
    >>> Schema({"age": Number(0, 120), "member": Boolean()}, missing={"age": "indicator"}).features
    ('age', 'age is missing', 'member', 'intercept')
    """

    columns: Mapping[str, Column]
    target: str | None = None
    intercept: bool = True
    norm: Real = 1
    missing: gaps.Policies = "centre"
    person: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise TypeError('columns must map names to columns, such as {"age": Number(0, 120)}')
        object.__setattr__(self, "columns", dict(self.columns))
        for name, column in self.columns.items():
            if not isinstance(name, str):
                raise TypeError("the name of a column must be text")
            if not isinstance(column, Number | Category | Boolean | Date):
                raise TypeError(f'column "{name}" must be a Number, a Category, a Boolean or a Date')
        if not isinstance(self.intercept, bool):
            raise TypeError("intercept must be True or False")
        if not 0 < rational(self.norm, "norm") <= 1:
            raise ValueError("norm must be greater than 0 and at most 1, the norm that scaling by the bounds gives")
        self._check_target()
        check_person_name(self.person, self.columns)
        object.__setattr__(self, "missing", gaps.checked(self.missing, self.columns, self.target))
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
        names = [entry for name in self._used for entry in self._entries_of(name)]
        names += ["intercept"] if self.intercept else []
        doubled = sorted(name for name, count in Counter(names).items() if count > 1)
        if doubled:
            raise ValueError(f'two entries of the vector would be called "{doubled[0]}": rename a column')

    @property
    def _key(self) -> tuple[object, ...]:
        """The order of the columns matters: it is the order of the entries."""
        policies = tuple(gaps.policy_of(self.missing, name) for name in self._used)
        norm = rational(self.norm, "norm")
        return tuple(self.columns.items()), self.target, self.intercept, norm, policies, self.person

    @property
    def _used(self) -> dict[str, Column]:
        return {name: column for name, column in self.columns.items() if name != self.target}

    @property
    def open_columns(self) -> tuple[str, ...]:
        """The columns, the target included, whose bounds or values are not declared: a fit finds them privately.

        >>> Schema({"age": Number(0, 120), "city": Category(), "income": Number(lower=0)}).open_columns
        ('city', 'income')
        """
        return tuple(name for name, column in self.columns.items() if column.is_open)

    @property
    def complete(self) -> bool:
        """Whether the bounds or values of all columns are declared."""
        return not self.open_columns

    def _require_complete(self) -> None:
        if names := self.open_columns:
            raise ValueError(
                f"the schema does not say the bounds or values of {_listed(names)}: declare them, as in Number(0, 120) "
                'or Category(["Rome", "Oslo"]), or use a model that finds them privately'
            )

    @property
    def parts(self) -> int:
        """How many parts of a vector share its norm: the columns but for the target, and the parts of dates."""
        return sum(scaling.shares(column) for column in self._used.values())

    @property
    def _scales(self) -> dict[str, scaling.Scale]:
        """How every column but the target is scaled: a dictionary of the caller's own."""
        return dict(self._own_scales)

    @cached_property
    def _own_scales(self) -> dict[str, scaling.Scale]:
        parts = self.parts
        return {name: self._scale(name, scaling.scale_for(column, parts), parts) for name, column in self._used.items()}

    def _scale(self, name: str, scale: Any, parts: int) -> scaling.Scale:
        return scaling.Indicated(scale, scaling.part_of_norm(parts)) if self._indicated(name) else scale

    def _indicated(self, name: str) -> bool:
        return gaps.policy_of(self.missing, name) == "indicator"

    @property
    def spans(self) -> dict[str, slice]:
        """Where the entries of every column are in a vector."""
        return scaling.spans(self._own_scales)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the entries of a vector, in order; the constant comes last. An open schema has none yet."""
        return (*self._entries, "intercept") if self.intercept else self._entries

    @property
    def _entries(self) -> tuple[str, ...]:
        self._require_complete()
        return tuple(entry for name in self._used for entry in self._entries_of(name))

    def _entries_of(self, name: str) -> tuple[str, ...]:
        own = tuple(entry_names(name, self.columns[name]))
        return (*own, gaps.entry_name(name)) if self._indicated(name) else own

    @property
    def for_prediction(self) -> Schema:
        """The schema of rows to predict: they have no target, and none of them is left out."""
        return replace(self, columns=self._used, target=None, missing=gaps.kept(self.missing))

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
        if self.target is None:
            return 0.0, 1.0
        self._require_complete()
        return _units(self.columns[self.target])[0]

    def check(self, types: Mapping[str, DType]) -> None:
        """Compare the names and declared types of a table with the schema; both are public. It may be open."""
        for name, column in self.columns.items():
            if name not in types:
                raise ValueError(f'the table has no column "{name}"; it has {_listed(types)}')
            if wrong := mismatches({name: column}, types):
                raise TypeError(wrong[0])

    def vectors(self, frame: nw.DataFrame[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """The vectors of rows, one row each, and the scaled targets (or none). No value raises or warns.

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
        return out[:at], None if aim is None else aim[:at]

    def blocks(self, frame: nw.DataFrame[Any]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64] | None]]:
        """As ``vectors``, some rows at a time: column-major, in the cache, overwritten by the next block."""
        self._require_complete()
        if hasattr(frame, "columns"):  # those of a matrix are numbers, which was checked when it was opened
            types = declared_types(frame).items()
            self.check({name: inferred(dtype) for name, dtype in types if name in self.columns})
        target = (self.target, scaling.target_scale(self.columns[self.target])) if self.target is not None else None
        needed = [name for name in self._used if gaps.policy_of(self.missing, name) == "drop"]
        return scaling.blocks(frame, self._scales, self.intercept, target, needed)

    def coefficients(self, theta: ArrayLike) -> Coefficients:
        """A linear function of vectors (one coefficient for every name in ``features``) in the user's units.

        >>> schema = Schema({"age": Number(0, 120), "income": Number(0, 1000)}, target="income")
        >>> schema.coefficients([0.6, 0.1])
        Coefficients(names=('age',), values=array([5.]), intercept=250.0)
        """
        given = np.asarray(theta, dtype=np.float64)
        if given.shape != (len(self.features),):
            raise ValueError(f"theta must have {len(self.features)} entries, one for each of the features")
        middle, half = self.target_units
        part = scaling.part_of_norm(self.parts)
        units = [unit for name in self._used for unit in self._units_of(name)]
        middles, halves = np.array(units).T
        values = half * part * self._at_knots(given[: len(units)]) / halves
        constant = half * given[-1] if self.intercept else 0.0
        return Coefficients(self._entries, values, float(middle + constant - values @ middles))

    def _at_knots(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same with the values of curves at their knots in the place of their coordinates."""
        if not any(isinstance(column, Spline) for column in self._used.values()):
            return theta
        values, at = theta.copy(), 0
        for name, column in self._used.items():
            if isinstance(column, Spline):
                own = slice(at, at + column.cells + 1)
                values[own] = curve_images(column.cells) @ theta[own]
            at += len(self._entries_of(name))
        return values

    def _units_of(self, name: str) -> list[tuple[float, float]]:
        """Middle and half width of every entry of a column."""
        own = _units(self.columns[name])
        return [*own, (0.0, 1.0)] if self._indicated(name) else own

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """Read a schema from a file, or from text with more than one line. Errors name the file and the key."""
        where, parts = toml.read(source)
        with toml.named(where):
            return cls(**parts)

    def to_toml(self) -> str:
        """The schema as text that ``from_toml`` reads."""
        return toml.write(self.columns, self.target, self.intercept, self.norm, self.missing, person=self.person)

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


def check_person_name(person: object, columns: Collection[str]) -> None:
    """Whether a column of identifiers has a name, and is not read as anything else."""
    if person is None:
        return
    if not isinstance(person, str) or not person:
        raise TypeError('person must be the name of a column, such as person="customer_id"')
    if person in columns:
        raise ValueError(
            f'the column "{person}" says whose rows belong together, and is not used for anything else: leave it out '
            "of the other columns"
        )


def undivided(schema: Schema) -> Schema:
    """The schema for rows that are protected one by one."""
    return schema if schema.person is None else replace(schema, person=None)


def mismatches(columns: Mapping[str, Column], types: Mapping[str, DType]) -> list[str]:
    """What is wrong with the declared types of a table, for all columns that it has.

    >>> mismatches({"age": Number(), "city": Category()}, {"age": nw.Date(), "city": nw.String()})[0]
    'column "age" is of type Date, but the schema says that it holds numbers; change the schema, or convert the column'
    """
    return [
        f'column "{name}" is of type {type_name(types[name])}, but the schema says that it holds {described(column)}; '
        "change the schema, or convert the column"
        for name, column in columns.items()
        if name in types and not column.fits(types[name])
    ]


def _units(column: Column) -> list[tuple[float, float]]:
    """Middle and half width of every entry in the user's units: a boolean is 0 or 1, a category has entries of 0 or 1,
    and a part of a date has a sine and a cosine.
    """
    if isinstance(column, Category):
        return [(0.0, 1.0)] * len(column.levels)
    if isinstance(column, Boolean):
        return [(0.5, 0.5)]
    if isinstance(column, Spline):
        return [(0.0, 1.0)] * (column.cells + 1)
    turns = [(0.0, 1.0)] * (2 * len(column.parts)) if isinstance(column, Date) else []
    return [(float(column.middle), float(column.half)), *turns]


def entry_names(name: str, column: Column) -> list[str]:
    """What the entries of a column are called, as far as they are declared."""
    if isinstance(column, Category):
        return [f"{name}={value}" for value in column.values or ()]
    if isinstance(column, Spline):
        return [name] if column.is_open else [f"{name} at {knot:.6g}" for knot in column.knots]
    turns = column.parts if isinstance(column, Date) else ()
    return [name, *(f"{name}.{part}.{wave}" for part in turns for wave in ("sin", "cos"))]


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    shown = [f'"{name}"' for name in list(names)[:20]]
    return ", ".join(shown) + (", …" if len(names) > 20 else "")
