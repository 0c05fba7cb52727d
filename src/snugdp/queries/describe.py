"""All columns of a schema in one pass and for one charge: what to run first on a new table.

Proof: ``mechanisms/statistics/described.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from snugdp.core.guarantee import Neighbours
from snugdp.core.outcome import Outcome
from snugdp.mechanisms.statistics.described import ROWS, DescribedRelease, EntryCounts
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan
from snugdp.propose.share import Share
from snugdp.propose.theorem import theorem
from snugdp.queries.base import Query, ReleaseKeywords, Shown
from snugdp.queries.described_columns import SUMS_WEIGHT, DescribedColumn, NumberRequest, described_column
from snugdp.queries.description import VALUE_NAMES, Description, names_with
from snugdp.queries.docstrings import takes
from snugdp.queries.quantiles import inner_quantile
from snugdp.queries.statistics.balance import balanced
from snugdp.queries.statistics.base import TYPICAL_ROWS, best, budget_shares, row_guess
from snugdp.queries.statistics.clips import Clip, check_clip
from snugdp.queries.table import Library, StatisticsTable, Value, library_of
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import release
from snugdp.tables.found import FoundNumber
from snugdp.tables.grid import Ends
from snugdp.tables.passes.statistics import Measure, RowCount, StatisticsPass
from snugdp.tables.passes.together import JointState, Together
from snugdp.tables.schema.kinds import Number, Undeclared
from snugdp.tables.schema.schema import Schema

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

STATISTICS = ("mean", "standard_deviation", "quantiles")
QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")
_NO_SCHEMA = (
    "a schema is needed: it says what is public about every column. The command 'snugdp schema init FILE -o NAME.toml' "
    'writes one to be filled in, from names and types alone; or schema=Schema({"age": Number(0, 120)})'
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
    bounds: Mapping[str, FoundNumber] | None


@dataclass(frozen=True, kw_only=True)
class Describe(Query[Description]):
    """Statistics of all columns of a schema, with a plan before the release. It is never refused.

    Rows, and of every column how many entries it has and how many are missing; of numbers also the mean, the standard
    deviation and quantiles; of categories and booleans the counts of all listed values. The budget is divided by public
    weights: of a column of numbers 2 for mean and deviation and 2 for quantiles, of any other column 1.

    Guarantee: (epsilon, delta)-DP for the chosen neighbours (``mechanisms/statistics/described.proof.md``), for
    everything that is shown together.

    Parameters
    ----------
    schema : Schema, str or Path
        Public bounds and values of the columns, or a TOML file with them; required. Bounds of numbers may be left open.
    bounds : mapping of str to FoundNumber, optional
        What was found before about numbers whose bounds the schema leaves open: ``certificate`` of another outcome. By
        default that is found in private, for a part of the budget, where means or deviations are asked for.
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
    bounds: Mapping[str, FoundNumber] | None = None
    _partial = True

    def __post_init__(self) -> None:
        if self.schema is None:
            raise ValueError(_NO_SCHEMA)
        if not isinstance(self.schema, Schema):
            object.__setattr__(self, "schema", Schema.from_toml(self.schema))
        check_clip(self.clip)
        if not isinstance(self.bounds, Mapping | None):
            raise TypeError("bounds must map columns to what was found of them, as the certificate of an outcome does")
        object.__setattr__(self, "rows", row_guess(self.rows))
        object.__setattr__(self, "statistics", _asked(self.statistics))
        object.__setattr__(self, "quantiles", tuple(self.quantiles))  # a list may change later
        object.__setattr__(self, "columns", None if self.columns is None else tuple(self.columns))
        object.__setattr__(self, "steps", self._steps)
        self._require_kinds()
        self.plan()

    def _require_kinds(self) -> None:
        """What a column holds must be declared: only models find it in private."""
        unknown = [name for name, kind in self.described.columns.items() if isinstance(kind, Undeclared)]
        if unknown:
            raise ValueError(
                f'the schema does not say what "{unknown[0]}" holds: declare it as a number, a boolean or a category '
                "with its values, or name the columns to describe by columns=[...]"
            )

    @property
    def _steps(self) -> dict[str, Real]:
        if not isinstance(self.steps, Mapping | None):
            raise TypeError('steps must map columns to the spacing of their values, such as {"age": 1}')
        given = dict(self.steps or {})
        if unknown := [name for name in given if name not in self.described.columns]:
            raise ValueError(f'steps has "{unknown[0]}", which is not among the columns that are described')
        return {name: rational(step, f'the step of "{name}"') for name, step in given.items()}

    @cached_property
    def described(self) -> Schema:
        """The columns that are asked for, with what is public about them."""
        assert isinstance(self.schema, Schema)
        known = self.schema.columns
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
    def _quantiles(self) -> tuple[Fraction, ...]:
        if "quantiles" not in self.statistics:
            return ()
        return tuple(sorted({inner_quantile(q) for q in self.quantiles}))

    @cached_property
    def _described(self) -> tuple[DescribedColumn, ...]:
        scatter = "standard_deviation" in self.statistics
        degree = 2 if scatter else 1 if "mean" in self.statistics else 0
        wanted = NumberRequest(degree, self._quantiles, scatter, self.clip, self.rows)
        columns, found = self.described.columns, self.bounds or {}
        plain = [described_column(name, 1, kind, wanted, self._steps.get(name)) for name, kind in columns.items()]
        part = Fraction(SUMS_WEIGHT, sum(column.weight for column in plain))
        wanted = replace(wanted, shares=tuple(share.part(part) for share in budget_shares(self._budget)))
        return tuple(
            described_column(name, at, kind, wanted, self._steps.get(name), seen=found.get(name))
            for at, (name, kind) in enumerate(columns.items(), 1)
        )

    @property
    def _open(self) -> Mapping[str, Ends]:
        """Numbers of which a mean or a deviation is asked, and of which nothing is known."""
        summed = {"mean", "standard_deviation"} & set(self.statistics)
        numbers = {name: kind for name, kind in self.described.columns.items() if isinstance(kind, Number)}
        return {
            name: (kind.lower, kind.upper)
            for name, kind in numbers.items()
            if summed and kind.is_open and name not in (self.bounds or {})
        }

    def _with_found(self, found: Mapping[str, FoundNumber], rows: int | None, epsilon: Fraction) -> Self:
        guess = rows if self.rows is None else self.rows
        return replace(self, bounds={**(self.bounds or {}), **found}, rows=guess, epsilon=epsilon)

    def _opened(self, data: object) -> tuple[Source, object]:
        from snugdp.queries.search import WIDEST  # for those who leave bounds to be found
        from snugdp.tables.sources import open_source

        source = open_source(data)
        source.check(self._with_found(dict.fromkeys(self._open, WIDEST), None, self._budget.epsilon)._pass)
        return source, data

    def _part(self, share: Share, weight: int) -> Share:
        """The part of a share that a weight stands for."""
        return share.part(Fraction(weight, sum(column.weight for column in self._described)))

    @cached_property
    def _share(self) -> Share:
        """The budget in the currency with the smaller errors: on average over columns and statistics, as ratios."""

        def doubt(share: Share) -> float:
            errors = (column.errors(partial(self._part, share), 10**9).values() for column in self._described)
            return sum(math.log(error) for several in errors for error in several)

        return best(budget_shares(self._budget), doubt)

    @cached_property
    def _mechanism(self) -> DescribedRelease:
        shares = partial(self._part, self._share)
        portions = (portion for column in self._described for portion in column.portions(shares))
        return DescribedRelease(tuple(portions), self._budget.neighbours)

    @cached_property
    def _plan(self) -> Plan:
        rows, shares = self.rows or TYPICAL_ROWS, partial(self._part, self._share)
        weights = Note("describe-weights", {"total": sum(column.weight for column in self._described)})
        notes = (Note("describe-rows", {"rows": rows}), *(column.note(shares, rows) for column in self._described))
        forecast = Forecast(chances=(PassChance(1.0, "always"),), notes=(weights, *notes))
        plan = Plan("Describe", theorem("describe/1"), self._mechanism.steps(), {}, forecast, self._budget)
        return plan.with_notes(Note("missing-counted"))

    def _column(self, data: object) -> str | None:
        return None

    def _release(self, data: object, context: ReleaseContext) -> Outcome[Description]:
        from snugdp.tables.engines import measure  # polars and the engines

        shown = Shown(self._mechanism, partial(self._show, library_of(data)))
        return release(self.plan(), shown, measure(data, self._pass).map(self._statistics_of), context)

    @cached_property
    def _pass(self) -> Together:
        cells = (column.cells for column in self._described)
        return Together((self._sums, *(each for each in cells if each is not None)), self.described)

    @cached_property
    def _sums(self) -> StatisticsPass:
        measures: list[Measure] = [RowCount(), *(column.measure for column in self._described)]
        return StatisticsPass(tuple(measures))

    def _statistics_of(self, states: JointState) -> Mapping[str, Any]:
        """By the portions that draw from them."""
        (rows,), *sums = self._sums.parts(states.parts[0])
        found: dict[str, Any] = {ROWS: rows}
        found |= {one.sums_id: one.statistics(rows, each) for one, each in zip(self._described, sums, strict=True)}
        kept = [one.quantiles_id for one in self._described if one.cells is not None]
        return found | {name: state.total() for name, state in zip(kept, states.parts[1:], strict=True)}

    def _show(self, library: Library, drawn: Mapping[str, Any]) -> Description:
        shares = partial(self._part, self._share)
        found = [column.found(drawn, shares) for column in self._described]
        rows, counts = balanced([one.entries for one in found], self._tail, drawn.get(ROWS))
        quantiles = tuple(f"{float(100 * q):g}%" for q in self._quantiles)
        lines: list[tuple[Value, ...]] = []
        listed: list[tuple[Value, ...]] = []
        for name, one, (entries, missing) in zip(self.described.columns, found, counts, strict=True):
            lines.append((name, *one.line(entries, missing, len(quantiles))))
            listed += [(name, value, count, one.value_error) for value, count in one.values]
        tables = (_table(names_with(quantiles), lines, library), _table(VALUE_NAMES, listed, library))
        return Description(rows, *tables)

    @property
    def _tail(self) -> float:
        """How many standard deviations the noise of counts stays below in 19 of 20 cases."""
        return EntryCounts(self._share).noise.tail


def _table(names: tuple[str, ...], lines: list[tuple[Value, ...]], library: Library) -> StatisticsTable:
    return StatisticsTable(names, tuple(zip(*lines, strict=True)) if lines else ((),) * len(names), library)


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
