"""Bounds for columns that have no public ones. Proof: ``mechanisms/bounds/exponential_grid.proof.md``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Unpack

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.bounds.exponential_grid import THEOREM, Counts, GridEnds, step_of
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.queries.base import Query, ReleaseKeywords, Shown
from snugdp.queries.docstrings import takes
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import numbers
from snugdp.tables.passes.columns.exponential_grid import EDGES, GridCounts, tally
from snugdp.tables.schema import toml
from snugdp.tables.schema.kinds import Number

_ALONE = "column"


@dataclass(frozen=True)
class EstimatedBounds:
    """Released bounds: a ``Number`` for every column, ready for a schema.

    Parameters
    ----------
    columns : mapping of str to Number
        The bounds by name; also ``bounds[name]``.

    Examples
    --------
    >>> EstimatedBounds({"age": Number(20, 80)})["age"]
    Number(lower=20, upper=80)
    """

    columns: Mapping[str, Number]

    def __getitem__(self, name: str) -> Number:
        return self.columns[name]

    @property
    def number(self) -> Number:
        """The bounds of the only column."""
        if len(self.columns) != 1:
            raise ValueError("there are several columns: ask for one of them by its name")
        return next(iter(self.columns.values()))

    def to_toml(self) -> str:
        """The sections of a schema file."""
        sections = ([toml.section(name), *toml.column_lines(number), ""] for name, number in self.columns.items())
        return "\n".join(line for section in sections for line in section)


class BoundsKeywords(ReleaseKeywords, total=False):
    """The keyword arguments of ``private_bounds``."""

    columns: Sequence[str] | None
    outside: Real


@dataclass(frozen=True, kw_only=True)
class Bounds(Query[EstimatedBounds]):
    """Lower and upper bounds of numbers, from a public grid that reaches from 2**-20 to 2**60 on both sides of zero.

    Missing and invalid entries are ignored. Nothing is ever refused: with too few rows the bounds are useless, and the
    plan says how many rows are enough.

    Guarantee: (epsilon, 0)-DP for the chosen neighbours (``mechanisms/bounds/exponential_grid.proof.md``).

    Parameters
    ----------
    columns : sequence of str, optional
        The columns of a table; without it, the data are a single column.
    epsilon : Real
        Privacy budget of all columns together.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    outside : Real, default=0.01
        The share of rows that may lie beyond each bound.

    Examples
    --------
    >>> Bounds(epsilon=2).release([20 + i % 60 for i in range(5000)]).value.number
    Number(lower=20, upper=80)
    """

    epsilon: Real
    columns: Sequence[str] | None = None
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    outside: Real = 0.01

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self._names):
            raise TypeError("columns must be a list of names")
        if not self._names or len(set(self._names)) != len(self._names):
            raise ValueError("columns must name at least one column, and none twice")
        if not 0 <= rational(self.outside, "outside") < Fraction(1, 2):
            raise ValueError("outside, the share of rows beyond each bound, must be at least 0 and less than 1/2")
        self._mechanism  # noqa: B018  a bad budget is refused here, before any data are seen

    @property
    def _names(self) -> tuple[str, ...]:
        return (_ALONE,) if self.columns is None else tuple(self.columns)

    @property
    def _read_columns(self) -> tuple[str, ...] | None:
        return None if self.columns is None else self._names

    @cached_property
    def _mechanism(self) -> GridEnds:
        budget, names = self._budget, self._names
        share = budget.epsilon / (2 * len(names))
        return GridEnds(
            share, rational(self.outside, "outside"), budget.neighbours.relation, len(EDGES), columns=len(names)
        )

    @cached_property
    def _plan(self) -> Plan:
        mechanism, budget = self._mechanism, self._budget
        cost = Cost(epsilon=2 * mechanism.epsilon, neighbours=budget.neighbours)
        scale, edges = float(mechanism.law.scale), len(EDGES)
        noises = (
            StepNoise("two-edges", "gumbel", scale, "rows", 2, {"edges": edges, "column": name}) for name in self._names
        )
        steps = tuple(Step(step_of(column), StepKind.RELEASE, noise, cost) for column, noise in enumerate(noises))
        beyond, enough = 2 * mechanism.slack, math.floor(4 * mechanism.slack / (1 - 2 * mechanism.outside)) + 1
        share = float(mechanism.outside)
        notes = (
            Note("rows-beyond", {"share": share, "rows": beyond}),
            Note("rows-needed", {"rows": enough}),
            Note("missing-entries"),
        )
        return Plan("Bounds", THEOREM, steps, {"outside": share}, Forecast(notes=notes))

    def _column(self, data: object) -> str | None:
        return None if self.columns else super()._column(data)

    def _release(self, data: object, context: ReleaseContext) -> Outcome[EstimatedBounds]:
        return release(self.plan(), Shown(self._mechanism, self._show), self._counts(data), context)

    def _counts(self, data: object) -> Secret[Counts]:
        if self.columns is None:
            return Secret(tally(numbers(data))[None, :])
        from snugdp.tables.engines import measure, numeric_source  # polars: only for those who bring a table

        work = GridCounts(self._names)
        return measure(numeric_source(data, self._names), work).map(work.table)

    def _show(self, ends: list[tuple[int, int]]) -> EstimatedBounds:
        return EstimatedBounds({name: _number(*pair) for name, pair in zip(self._names, ends, strict=True)})


def _number(one: int, other: int) -> Number:
    """Bounds from two edges: in order, and one step apart on each side where they are the same."""
    low, high = min(one, other), max(one, other)
    if low == high:
        low, high = max(low - 1, 0), min(high + 1, len(EDGES) - 1)
    return Number(_short(float(EDGES[low])), _short(float(EDGES[high])))


def _short(edge: float) -> int | float:
    return int(edge) if edge.is_integer() else edge


@takes(Bounds)
def private_bounds(data: object, **options: Unpack[BoundsKeywords]) -> Outcome[EstimatedBounds]:
    """Private bounds for one column, or for columns of a table: ``Bounds(...).release(data)``.

    Parameters
    ----------
    data : array-like or table
        The column, or the table that holds the ``columns``.

    Examples
    --------
    >>> ages = [20 + i % 60 for i in range(5000)]
    >>> private_bounds(ages, epsilon=2).value.number
    Number(lower=20, upper=80)
    """
    return Bounds._answer(data, **options)
