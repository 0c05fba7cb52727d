"""Queries whose bounds nobody gave: these are looked for privately, then the query is asked with what was found.

Proof: ``mechanisms/bounds/looks/columns.proof.md``, Theorem 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.accounting import gaussian
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.bounds.looks.columns import THEOREM, ColumnLooks, Sighting
from snugdp.numerics.rationals import rational
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.queries.bounds.given import ends_as_floats
from snugdp.release.context import ReleaseContext
from snugdp.release.stages import TwoStages
from snugdp.secrecy.secret import Secret
from snugdp.tables.cells import numbers
from snugdp.tables.engines import numeric_source
from snugdp.tables.found import FoundNumber
from snugdp.tables.opened import OpenedTable
from snugdp.tables.passes.columns.statistics import ALONE
from snugdp.tables.sources import Source, open_source

if TYPE_CHECKING:
    from snugdp.queries.base import Query

Seen = TypeVar("Seen")

# Chosen on made-up columns: studies/snugdp_studies/bench/statistics/no_bounds.py.
_PURE_SHARE, _GAUSSIAN_SHARE = Fraction(1, 5), Fraction(12, 100)
WIDEST = FoundNumber(-(2.0**59), 2.0**59, 0.0, 2.0**58)  # in a plan: no other bounds cost more
_USUAL_ROWS = 10_000
_FREE = (None, None)


@dataclass(frozen=True)
class BoundsSearch(Generic[Seen]):
    """A query and the looks before it, as one release.

    Guarantee: ``plan.cost``, which fits the budget (``columns.proof.md``, Theorem 2).
    """

    query: Query[Seen]

    @cached_property
    def _parts(self) -> tuple[ColumnLooks, Fraction]:
        """The looks, and the epsilon that is left for the query: both in the currency of the query."""
        budget, names = self.query._budget, tuple(self.query._open)
        known = {name: ends for name, each in self.query._open.items() if (ends := ends_as_floats(each)) != _FREE}
        if budget.delta:
            whole = Share.gaussian(budget)
            mu = math.sqrt(float(whole.mu_squared * (1 - _GAUSSIAN_SHARE)))
            epsilon = Fraction(gaussian.epsilon(Fraction(mu), budget.delta))
            left = Share.gaussian(replace(budget, epsilon=epsilon))
            if left.mu_squared < whole.mu_squared and self._asked(epsilon).plan().cost == left.cost:
                share = Share(Fraction(0), whole.mu_squared - left.mu_squared, budget.neighbours)
                return ColumnLooks(names, share, known, partial=self.query._partial), epsilon
        pure = Share.pure(budget).part(_PURE_SHARE)
        return ColumnLooks(names, pure, known, partial=self.query._partial), budget.epsilon * (1 - _PURE_SHARE)

    def _asked(self, epsilon: Fraction) -> Query[Seen]:
        """The query with bounds, for a plan."""
        return self.query._with_found(dict.fromkeys(self.query._open, WIDEST), _USUAL_ROWS, epsilon)

    @cached_property
    def _then(self) -> Plan:
        """The plan of the query itself: its costs are the same whatever is found."""
        return self._asked(self._parts[1]).plan()

    @cached_property
    def plan(self) -> Plan:
        """What will be done and what it costs."""
        plan = self._planned()
        if not plan.cost.fits(self.query._budget):
            raise ValueError("the budget is too small to find bounds and answer as well: give bounds")
        return plan

    def _planned(self) -> Plan:
        then, looks = self._then, self._parts[0]
        steps, proposal = (
            (*looks.steps(), *then.steps),
            {name: each for name, each in then.proposal.items() if name != "beta"},
        )
        if (beta := getattr(self.query, "beta", None)) is not None:
            proposal["beta"] = float(rational(beta, "beta"))
        return Plan(then.title, THEOREM, steps, proposal, self._forecast(), self.query._budget)

    def _forecast(self) -> Forecast:
        """In widths of the bounds that will be found, where it was in the units of a column."""
        forecast, looks = self._then.forecast, self._parts[0]
        chances = tuple(chance for chance in forecast.chances if chance.condition != "always")
        found = PassChance(0.84, "bounds-found", {"rows": looks.rows_needed})
        notes = (note for note in forecast.notes if not self._in_units(note))
        return Forecast(chances=(found, *chances), notes=(Note("bounds-are-sought"), *notes))

    def _in_units(self, note: Note) -> bool:
        """Whether it speaks in the units of a column of which nobody knows them before."""
        about = str(note.params.get("column", note.params.get("statistic", "")))
        named = any(about == name or about.startswith(f"{name}_") for name in self.query._open)
        return note.code == "error-with-rows" or (named and not {"mean", "error"}.isdisjoint(note.params))

    def release(self, data: object, context: ReleaseContext) -> Outcome[Seen]:
        """Pay, look, and ask with what was found; a refusal where a column was not."""
        looks, epsilon = self._parts
        source, rest = self.query._opened(data)
        table = OpenedTable(source)
        table.read(looks.first)

        def then(_: Secret[OpenedTable], seen: Sighting, paid: ReleaseContext) -> Outcome[Seen]:
            return self.query._with_found(seen.columns, seen.rows, epsilon)._answered(rest, paid)

        stages = TwoStages(self.plan, looks, then, self._then.cost)
        return stages.release_second(Secret(table), context, _certificate)


def _certificate(seen: Sighting) -> Any:
    """What was found: of one column, or of several by their names."""
    found = dict(seen.columns)
    return next(iter(found.values())) if len(found) == 1 else found


def opened_column(data: object, column: str | None) -> tuple[Source, object]:
    """The table in which a column is looked at, and the same rows for the query: a column of a table, or one alone."""
    if column is not None:
        return opened_columns(data, (column,))
    values = numbers(data)
    return column_source({ALONE: values}), values


def opened_columns(data: object, columns: Iterable[str]) -> tuple[Source, Source]:
    """A table with these columns of numbers, twice."""
    source = numeric_source(data, columns)
    return source, source


def column_source(columns: Mapping[str, NDArray[Any]]) -> Source:
    """A table of columns that came by themselves."""
    return open_source(pl.DataFrame({name: values.astype(np.float64, copy=False) for name, values in columns.items()}))
