"""All columns of a table for one charge, with a schema or without: what to run first on a new table.

Proof: ``mechanisms/statistics/described.proof.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Query, ReleaseKeywords, SearchedQuery, Shown
from snugdp.queries.description.columns import DescribedKind, NumberRequest
from snugdp.queries.description.result import Description
from snugdp.queries.description.table import DescribedTable, described_kinds, found_numbers, rows_found
from snugdp.queries.docstrings import takes
from snugdp.queries.order_statistics.quantiles import inner_quantile
from snugdp.queries.statistics.base import budget_shares, row_guess
from snugdp.queries.statistics.clips import Clip, check_clip
from snugdp.queries.table import library_of
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.tables.found import FoundBounds, FoundNumber
from snugdp.tables.grid import Ends
from snugdp.tables.passes.together import Together
from snugdp.tables.schema.infer import declared_types, readable
from snugdp.tables.schema.kinds import Category, Column, Date, Number, Undeclared
from snugdp.tables.schema.schema import Schema

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

STATISTICS = ("mean", "standard_deviation", "quantiles")
QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")
_NO_COLUMNS = (
    "without a schema the columns are those of a table: Describe(...).for_table(data).plan() plans for its names and "
    "types, and looks at no row"
)


class DescribeKeywords(ReleaseKeywords, total=False):
    """The keyword arguments of ``describe``."""

    schema: Schema | str | Path | None
    delta: Real
    columns: Sequence[str] | None
    statistics: Sequence[str]
    quantiles: Sequence[Real]
    steps: Mapping[str, Real] | None
    clip: Clip
    rows: int | None
    bounds: Mapping[str, FoundNumber] | FoundBounds | None


@dataclass(frozen=True, kw_only=True)
class Describe(Query[Description]):
    """Statistics of all columns of a table, with a plan before the release. It is never refused.

    Rows, and of every column how many entries it has and how many are missing; of numbers and dates also the mean, the
    standard deviation and quantiles; of categories and booleans the counts of all values. What a schema leaves open,
    or all of it where there is no schema, is found privately for a quarter of the budget: what a column holds, its
    bounds, its values. The rest is divided by weights: of a column of numbers or dates 2 for mean and deviation and 2
    for quantiles, of any other column 1.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/described.proof.md``), for
    everything that is shown together.

    Parameters
    ----------
    schema : Schema, str or Path, optional
        Public bounds and values of the columns, or a TOML file with them; any of them may be left open. Without a
        schema the columns are those of the table, by their names and types; identifiers and free text are left out.
    bounds : FoundBounds, or mapping of str to FoundNumber, optional
        What was found before, at no cost: ``certificate`` of another outcome, or ``bounds_`` of a model.
    epsilon, delta : Real
        The privacy budget, for everything together. With a delta the noise is Gaussian where that is smaller.
    neighbours : {"add_remove", "replace"}
        Which data sets count as neighbours.
    columns : sequence of str, optional
        Some columns of the schema; by default all. The fewer, the less noise.
    statistics : sequence of {"mean", "standard_deviation", "quantiles"}
        What is asked of numbers; by default all. The fewer, the less noise. Counts are always released.
    quantiles : sequence of Real
        Which quantiles; by default 0.05, 0.25, 0.5, 0.75 and 0.95.
    steps : mapping of str to Real, optional
        The public spacing of the values of some columns, such as {"age": 1} for whole years: quantiles are then
        multiples of it, and on rounded numbers much better.
    clip : {"auto", "private"}, optional
        Where numbers are clipped for means and deviations, as in ``Mean``.
    rows : int, optional
        A public guess of the number of rows, for the forecast and for "auto".

    Examples
    --------
    >>> import polars as pl
    >>> import snugdp
    >>> schema = snugdp.Schema({"age": snugdp.Number(0, 120), "city": snugdp.Category(["Oslo", "Rome"])})
    >>> table = pl.DataFrame({"age": [20 + i % 41 for i in range(5000)], "city": ["Oslo", "Rome"] * 2500})
    >>> found = snugdp.Describe(schema=schema, epsilon=2).release(table).value
    >>> 39 < found.mean("age").value < 41, 2400 < found.counts("city")["Rome"].value < 2600
    (True, True)
    """

    schema: Schema | str | Path | None = None
    epsilon: Real
    delta: Real = 0
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    columns: Sequence[str] | None = None
    statistics: Sequence[str] = STATISTICS
    quantiles: Sequence[Real] = QUANTILES
    steps: Mapping[str, Real] | None = None
    clip: Clip = "auto"
    rows: int | None = None
    bounds: Mapping[str, FoundNumber] | FoundBounds | None = None
    _partial = True
    _left_out: ClassVar[Mapping[str, str]] = {}  # of a question for a table, its own

    def __post_init__(self) -> None:
        if isinstance(self.schema, str | Path):
            object.__setattr__(self, "schema", Schema.from_toml(self.schema))
        if not isinstance(self.schema, Schema | None):
            raise TypeError(
                "schema must be a Schema, or the path of a TOML file with one; leave it out to have it found"
            )
        check_clip(self.clip)
        if not isinstance(self.bounds, Mapping | FoundBounds | None):
            raise TypeError("bounds must map columns to what was found of them, as the certificate of an outcome does")
        object.__setattr__(self, "rows", row_guess(self.rows))
        object.__setattr__(self, "statistics", _asked(self.statistics))
        object.__setattr__(self, "quantiles", tuple(self.quantiles))  # a list may change later
        object.__setattr__(self, "columns", None if self.columns is None else tuple(self.columns))
        object.__setattr__(self, "steps", self._steps)
        if self._known_schema is not None:
            self.plan()

    @property
    def _steps(self) -> dict[str, Real]:
        if not isinstance(self.steps, Mapping | None):
            raise TypeError('steps must map columns to the spacing of their values, such as {"age": 1}')
        given = dict(self.steps or {})
        known = given if self._known_schema is None else self.described.columns
        if unknown := [name for name in given if name not in known]:
            raise ValueError(f'steps has "{unknown[0]}", which is not among the columns that are described')
        return {name: rational(step, f'the step of "{name}"') for name, step in given.items()}

    @property
    def _known_schema(self) -> Schema | None:
        """What is known of the columns before a table is brought."""
        assert not isinstance(self.schema, str | Path)
        return self.bounds.declared if self.schema is None and isinstance(self.bounds, FoundBounds) else self.schema

    def for_table(self, data: object) -> Self:
        """The same question with the columns of a table, by their names and declared types, where there is no schema.

        No row is looked at. What is left out, and why, is in ``left_out``.

        Parameters
        ----------
        data : table
            A frame, the path of files, a database table or a Spark table.
        """
        if self._known_schema is not None:
            return self
        from snugdp.tables.sources import open_source

        source = open_source(data)
        types = declared_types(source.types, loaded=source.inferred)
        types = {name: dtype for name, dtype in types.items() if name != self.person}
        columns, left_out = readable(types, self.columns)
        asked = replace(self, schema=Schema(columns, intercept=False))
        object.__setattr__(asked, "_left_out", left_out)
        return asked

    _for = for_table

    @property
    def left_out(self) -> Mapping[str, str]:
        """Columns of a table that are not described, and why: with a schema none are."""
        return dict(self._left_out)

    @cached_property
    def described(self) -> Schema:
        """The columns that are asked for, with what is public about them."""
        schema = self._known_schema
        if schema is None:
            raise ValueError(_NO_COLUMNS)
        known = schema.columns
        names = tuple(known) if self.columns is None else self.columns
        for name in names:
            if name not in known:
                raise ValueError(f'the schema has no column "{name}"; it has {", ".join(known)}')
        if not names or len(set(names)) < len(names):
            raise ValueError("columns must name some columns of the schema, none twice; leave it out for all")
        return Schema({name: known[name] for name in names}, intercept=False)

    @property
    def _read_columns(self) -> tuple[str, ...]:
        return tuple(self.described.columns)

    @cached_property
    def _of_rows(self) -> Self:
        asked = super()._of_rows
        object.__setattr__(asked, "_left_out", self._left_out)
        return asked

    @cached_property
    def _wanted(self) -> NumberRequest:
        scatter = "standard_deviation" in self.statistics
        degree = 2 if scatter else 1 if "mean" in self.statistics else 0
        chosen = tuple(sorted({inner_quantile(q) for q in self.quantiles})) if "quantiles" in self.statistics else ()
        return NumberRequest(degree, chosen, scatter, self.clip, self.rows)

    @cached_property
    def _table(self) -> DescribedTable:
        """The columns, where all is known of them that a description needs."""
        shares, found = budget_shares(self._budget), self.bounds or {}
        if isinstance(found, FoundBounds):
            return self._table_of(found, *shares)
        kinds: Mapping[str, DescribedKind] = self.described.columns
        return DescribedTable(kinds, self._wanted, shares, self._steps, found, self.described)

    def _table_of(self, found: FoundBounds, *shares: Share) -> DescribedTable:
        """The columns by what was found of them."""
        kinds, seen = described_kinds(self.described, found), found_numbers(self.described, found)
        steps = {name: step for name, step in self._steps.items() if isinstance(kinds[name], Number | Date)}
        wanted = self._wanted if self.rows is not None else replace(self._wanted, rows=rows_found(found))
        return DescribedTable(kinds, wanted, shares, steps, seen)

    @cached_property
    def _search(self) -> SearchedQuery[Description] | None:
        if isinstance(self.bounds, FoundBounds) or not any(map(self._is_hidden, self.described.columns.values())):
            return super()._search
        from snugdp.queries.description.open import OpenDescription  # looks read tables: only for those who need them

        return OpenDescription(self.described, self._budget, self._table_of, self._shown)

    def _is_hidden(self, kind: Column) -> bool:
        """Whether something must be found beside the bounds of numbers."""
        return isinstance(kind, Undeclared) or (
            kind.is_open and (isinstance(kind, Category) or (isinstance(kind, Date) and bool(self._wanted.degree)))
        )

    @property
    def _open(self) -> Mapping[str, Ends]:
        """Numbers of which a mean or a deviation is asked, and of which nothing is known."""
        numbers = {name: kind for name, kind in self.described.columns.items() if isinstance(kind, Number)}
        return {
            name: (kind.lower, kind.upper)
            for name, kind in numbers.items()
            if self._wanted.degree and kind.is_open and (self.bounds is None or self.bounds.get(name) is None)
        }

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        guess = rows if self.rows is None else self.rows
        known = self.bounds if isinstance(self.bounds, Mapping) else {}
        return replace(self, bounds={**known, **found}, rows=guess, epsilon=epsilon)

    def _opened(self, data: object) -> tuple[Source, object]:
        from snugdp.queries.search import WIDEST  # for those who leave bounds to be found
        from snugdp.tables.sources import open_source

        source = open_source(data)
        source.check(self._with_found(dict.fromkeys(self._open, WIDEST), None, self._budget.epsilon)._pass)
        return source, data

    @cached_property
    def _plan(self) -> Plan:
        table = self._table
        return Plan("Describe", theorem("describe/1"), table.mechanism.steps(), {}, table.forecast(), self._budget)

    def _column(self, data: object) -> str | None:
        return None

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Description]:
        from snugdp.tables.engines import measure  # polars and the engines

        shown = Shown(self._table.mechanism, partial(self._shown, self._table, data))
        return release(self.plan(), shown, measure(data, self._pass).map(self._table.statistics), context)

    def _shown(self, table: DescribedTable, data: object, drawn: Mapping[str, Any]) -> Description:
        return table.shown(library_of(data), self._left_out, drawn)

    @property
    def _pass(self) -> Together:
        return self._table.work


def _asked(statistics: Sequence[str]) -> tuple[str, ...]:
    """The statistics of numbers, checked, in the order of ``STATISTICS``."""
    given = (statistics,) if isinstance(statistics, str) else tuple(statistics)
    unknown = [name for name in given if name not in STATISTICS]
    if unknown:
        raise ValueError(f"statistics must be some of {', '.join(STATISTICS)}; not {unknown[0]!r}")
    return tuple(name for name in STATISTICS if name in given)


@takes(Describe)
def describe(data: object, **options: Unpack[DescribeKeywords]) -> Outcome[Description]:
    """Private statistics of all columns of a table, in one pass: ``Describe(...).release(data)``.

    Parameters
    ----------
    data : table
        A frame, the path of files, a database table or a Spark table.

    Returns
    -------
    Outcome
        Its value is a ``Description``: print it, or take ``.value.frame``, a frame with a row for every column.

    Examples
    --------
    >>> import polars as pl
    >>> import snugdp
    >>> schema = snugdp.Schema({"age": snugdp.Number(0, 120)})
    >>> found = snugdp.describe(pl.DataFrame({"age": [40] * 900 + [None] * 100}), schema=schema, epsilon=2).value
    >>> found.columns["type"], 80 < found.columns["missing"][0] < 120
    (('number',), True)
    """
    return Describe._answer(data, **options)
