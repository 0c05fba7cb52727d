"""``snugdp query count`` and the other statistics: numbers with intervals, in one pass over a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.commands.query.groups import GroupOptions
from snugdp.cli.options import Data, Delta, Epsilon, PersonOptions, Relation, Rows
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing

if TYPE_CHECKING:
    from snugdp.tables.sources import Source

SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="A schema that describes the columns, a TOML file.")
]
Lower = Annotated[
    str | None, typer.Option(help="Public lower bound of the column, known without the data; else it is found.")
]
Upper = Annotated[str | None, typer.Option(help="Public upper bound of the column; else it is found.")]
Values = Annotated[str | None, typer.Option(help="Listed values, separated by commas; by default those of the schema.")]
OneColumn = Annotated[str, typer.Option("--column", "-c", help="The column.", show_default=False)]
Inference = Annotated[
    bool, typer.Option("--inference", help="Release a standard error and a confidence interval for the population.")
]
ClipWord = Annotated[str, typer.Option(help='Where to clip numbers privately: "auto", "private" (always) or "none".')]


@dataclass(frozen=True, kw_only=True)
class StatisticOptions(PersonOptions):
    """A file and a budget."""

    data: Data
    epsilon: Epsilon
    delta: Delta = "0"
    neighbours: Relation = "add_remove"
    schema: SchemaOption = None

    @property
    def budget(self) -> dict[str, Any]:
        """As queries are given it."""
        budget = {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}
        return {**budget, **self.persons(self.schema)}

    def bounds(self, column: str, lower: str | None, upper: str | None) -> tuple[Any, Any]:
        """The bounds of a column of numbers, as given or as the schema has them; None for an end that neither has."""
        from snugdp.cli import reading

        return reading.bounds(self.schema, column, lower, upper)

    def labels(self, column: str, values: str | None, source: Source) -> list[Any] | None:
        """The listed values of a column, as given or as the schema has them; nothing for booleans, or for neither."""
        from snugdp.cli import reading
        from snugdp.tables.schema.kinds import Category

        if values is not None:
            return list(reading.listed(column, [value.strip() for value in values.split(",")], source).levels)
        kind = reading.declared(self.schema, column)
        return list(kind.levels) if isinstance(kind, Category) and not kind.is_open else None

    def release(
        self,
        choices: ReleaseOptions,
        name: str,
        of: str,
        query: Any,
        public: Mapping[str, Any],
        *,
        within: tuple[float, float] = (-math.inf, math.inf),
    ) -> None:
        """Plan, pay, release, tell. ``within``: public bounds on the answer."""
        from snugdp.tables.sources import open_source

        plan, source = query.plan(), open_source(self.data)
        outcome = query.release(source, ledger=choices.agreed(plan))
        words, shown = (None, {"value": None}) if outcome.value is None else _told(outcome.value)
        said = f"{name.replace('-', ' ')}{f' of {of}' if of else ''}"
        result = ReleaseResult(
            None if words is None else f"Released: {said} = {words}",
            {"query": name, "column": of or None, **shown},
            title=said.capitalize(),
            public={"column": of or None, **public},
            within=within,
        )
        choices.tell(outcome, plan, result)


def _told(value: Any) -> tuple[str, dict[str, Any]]:
    """An ``Estimate``, ``HistogramCounts`` or interval in words, and for machines."""
    if isinstance(value, tuple):
        low, high = value
        return f"{low:,.6g} to {high:,.6g} (population, 95 % confidence)", {"value": list(value)}
    if hasattr(value, "cells"):
        beside = {name: getattr(value, name) for name in ("below", "above", "other", "missing")}
        pairs = [*zip(map(_cell, value.cells), value.counts, strict=True), *beside.items()]
        lines = [f"  {cell}: {count:,}" for cell, count in pairs if count is not None]
        shown = {"cells": value.cells, "counts": value.counts, "error": value.error, **beside}
        return "\n".join([f"counts, with noise below {value.error:,.3g} in 19 of 20 cases", *lines]), shown
    ends = {name: end if math.isfinite(end := getattr(value, name)) else None for name in ("lower", "upper")}
    rest = {name: getattr(value, name) for name in ("count", "below", "above")}
    told = f"{value.value:,.6g}, with noise below {value.error:,.3g} in 19 of 20 cases{_hidden(value)}"
    if value.population_lower is not None:
        low, high = value.conf_int()
        told = f"{told}\nPopulation, 95 % confidence interval: {low:,.6g} to {high:,.6g}"
        rest |= {"standard_error": _finite(value.standard_error), "conf_int": [low, high]}
    return told, {"value": value.value, "error": value.error, **ends, **rest}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _hidden(value: Any) -> str:
    """What clipping may hide, in words."""
    if None in (value.below, value.above):
        return "; rows beyond the bounds that were found may lie anywhere and are left out of this"
    far = [f"{amount:,.3g} {side}" for amount, side in ((value.below, "less"), (value.above, "more")) if amount]
    return f"; without clipping up to {' or '.join(far)}" if far else ""


def _between(ends: tuple[Any, Any]) -> str:
    from snugdp.cli.reading import bounds_text

    return bounds_text(ends)


def _cell(cell: Any) -> str:
    return f"{cell[0]:,.6g} to {cell[1]:,.6g}" if isinstance(cell, tuple) else str(cell)


def _numbers(file: object, columns: Sequence[str]) -> None:
    """Columns that are there, with numbers in them by their declared types: said before the plan is agreed to."""
    from snugdp.cli import reading

    reading.of_numbers(file, columns)


def _labels(file: object, column: str) -> Source:
    """The file, if it has the column, and labels in it by its declared type."""
    from snugdp.cli import reading
    from snugdp.tables.schema.kinds import Category

    return reading.opened(file, {column: Category(["any"])})


@dataclass(frozen=True, kw_only=True)
class MomentOptions(StatisticOptions):
    """A column of numbers, whose bounds are given or found."""

    column: OneColumn
    lower: Lower = None
    upper: Upper = None
    clip: ClipWord = "auto"
    rows: Rows = None

    def ask(
        self, choices: ReleaseOptions, name: str, make: Callable[..., Any], groups: GroupOptions, **given: Any
    ) -> None:
        """Release a statistic of it, or of every group."""
        low, high = self.bounds(self.column, self.lower, self.upper)
        if groups.wanted:
            statistic, ends = {self.column: [name.replace("-", "_")]}, {self.column: (low, high)}
            groups.release(choices, self.data, statistic, ends, self.schema, **self.budget, **given)
            return
        clip = None if self.clip == "none" else self.clip
        query = make(column=self.column, bounds=(low, high), clip=clip, rows=self.rows, **self.budget, **given)
        _numbers(self.data, [self.column])
        bounds = _between((low, high))
        public = {"bounds": bounds, "clip": self.clip, "rows": self.rows, **given}
        self.release(choices, name, self.column, query, public, within=_answers(name, low, high))


def _answers(name: str, low: Any, high: Any) -> tuple[float, float]:
    """Where the answer can lie, by the public bounds of the column."""
    least = -math.inf if low is None else float(low)
    most = math.inf if high is None else float(high)
    return {"mean": (least, most), "variance": (0.0, math.inf), "standard-deviation": (0.0, math.inf)}.get(
        name, (-math.inf, math.inf)
    )


@dataclass(frozen=True, kw_only=True)
class PairOptions(StatisticOptions):
    """Two columns of numbers, whose bounds are given or found."""

    column: Annotated[list[str], typer.Option("--column", "-c", help="A column; give it twice.")]
    lower: Annotated[list[str] | None, typer.Option(help="Public lower bounds, in the order of the columns.")] = None
    upper: Annotated[list[str] | None, typer.Option(help="Public upper bounds, in the order of the columns.")] = None
    rows: Rows = None

    def ask(self, choices: ReleaseOptions, name: str, make: Callable[..., Any]) -> None:
        """Release a statistic of them."""
        if len(self.column) != 2:
            raise ValueError("two columns are needed: --column height --column weight")
        nothing: list[str | None] = [None, None]
        lower, upper = ([*ends] if ends else nothing for ends in (self.lower, self.upper))
        if len(lower) != 2 or len(upper) != 2:
            raise ValueError("bounds are given for both columns or none: --lower 100 --upper 250 --lower 0 --upper 200")
        ends = zip(self.column, lower, upper, strict=True)
        bounds = tuple(self.bounds(one, low, high) for one, low, high in ends)
        query = make(columns=tuple(self.column), bounds=bounds, rows=self.rows, **self.budget)
        _numbers(self.data, self.column)
        written = ", ".join(map(_between, bounds))
        within = (-1.0, 1.0) if name == "correlation" else (-math.inf, math.inf)
        public = {"bounds": written, "rows": self.rows}
        self.release(choices, name, " and ".join(self.column), query, public, within=within)


@dataclass(frozen=True, kw_only=True)
class RankOptions(StatisticOptions):
    """One column of numbers that is asked about by ranks."""

    column: OneColumn
    lower: Lower = None
    upper: Upper = None
    step: Annotated[str, typer.Option(help="The public spacing of the values, such as 1 for whole years.")] = "0"

    def ask(self, choices: ReleaseOptions, name: str, make: Callable[..., Any], **asks: Any) -> None:
        """Release something of its order."""
        bounds = self.bounds(self.column, self.lower, self.upper)
        query = make(column=self.column, bounds=bounds, step=self.step, **asks, **self.budget)
        _numbers(self.data, [self.column])
        self.release(choices, name, self.column, query, {"bounds": _between(bounds), **asks})


@releasing
def count(
    asked: StatisticOptions,
    *,
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="Count the rows that have an entry in this column.")
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Count the missing cells of the column.")] = False,
    groups: GroupOptions,
    choices: ReleaseOptions,
) -> None:
    """The number of rows, or of entries or missing cells in a column.

    Example: snugdp query count people.parquet --epsilon 0.1 --ledger people.ledger
    """
    from snugdp.queries.statistics.counts import Count

    if groups.wanted:
        if column is not None or missing:
            raise ValueError("the rows of groups are counted, not the entries of a column: leave out --column")
        groups.release(choices, asked.data, {}, {}, asked.schema, **asked.budget)
        return
    query = Count(column=column, missing=missing, **asked.budget)
    if column is not None:
        _labels(asked.data, column)
    asked.release(choices, "count", column or "", query, {"missing": True} if missing else {}, within=(0.0, math.inf))


@releasing
def total(asked: MomentOptions, *, groups: GroupOptions, choices: ReleaseOptions) -> None:
    """The sum of a column of numbers.

    Example: snugdp query sum people.parquet -c income --lower 0 --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.queries.statistics.counts import Sum

    asked.ask(choices, "sum", Sum, groups)


@releasing
def mean(asked: MomentOptions, *, inference: Inference = False, groups: GroupOptions, choices: ReleaseOptions) -> None:
    """The mean of a column of numbers.

    Example: snugdp query mean people.parquet -c income --epsilon 0.5 --ledger people.ledger

    For the population: snugdp query mean people.parquet -c income --inference --epsilon 0.5

    By group: snugdp query mean people.parquet -c income --schema people.toml --by city --epsilon 1 --delta 1e-6
    """
    from snugdp.queries.statistics.moments import Mean

    asked.ask(choices, "mean", Mean, groups, **({"inference": True} if inference else {}))


@releasing
def variance(asked: MomentOptions, *, groups: GroupOptions, choices: ReleaseOptions) -> None:
    """The variance of a column of numbers.

    Example: snugdp query variance people.parquet -c age --epsilon 0.5
    """
    from snugdp.queries.statistics.moments import Variance

    asked.ask(choices, "variance", Variance, groups)


@releasing
def standard_deviation(asked: MomentOptions, *, groups: GroupOptions, choices: ReleaseOptions) -> None:
    """The standard deviation of a column of numbers.

    Example: snugdp query standard-deviation people.parquet -c age --schema people.toml --epsilon 0.5
    """
    from snugdp.queries.statistics.moments import StandardDeviation

    asked.ask(choices, "standard-deviation", StandardDeviation, groups)


@releasing
def covariance(asked: PairOptions, *, choices: ReleaseOptions) -> None:
    """The covariance of two columns of numbers.

    Example: snugdp query covariance people.parquet -c age -c income --schema people.toml --epsilon 0.5
    """
    from snugdp.queries.statistics.pairs import Covariance

    asked.ask(choices, "covariance", Covariance)


@releasing
def correlation(asked: PairOptions, *, choices: ReleaseOptions) -> None:
    """The correlation of two columns of numbers.

    Example: snugdp query correlation people.parquet -c age -c income --schema people.toml --epsilon 0.5
    """
    from snugdp.queries.statistics.pairs import Correlation

    asked.ask(choices, "correlation", Correlation)


@releasing
def proportion(
    asked: StatisticOptions,
    *,
    column: OneColumn,
    values: Values = None,
    rows: Rows = None,
    inference: Inference = False,
    groups: GroupOptions,
    choices: ReleaseOptions,
) -> None:
    """The share of rows that are true, or that have one of the --values.

    Example: snugdp query proportion people.parquet -c commute --values train,bicycle --epsilon 0.5
    """
    from snugdp.queries.statistics.moments import Proportion

    if groups.wanted:
        if values is not None:
            raise ValueError("proportions by group are those of columns of true and false: leave out --values")
        asks = {**asked.budget, "inference": inference}
        groups.release(choices, asked.data, {column: ["proportion"]}, {}, asked.schema, **asks)
        return
    source = _labels(asked.data, column)
    listed = None if values is None else asked.labels(column, values, source)
    query = Proportion(column=column, values=listed, rows=rows, inference=inference, **asked.budget)
    asked.release(choices, "proportion", column, query, {"values": listed, "rows": rows}, within=(0.0, 1.0))


@releasing
def histogram(
    asked: StatisticOptions,
    *,
    column: OneColumn,
    edges: Annotated[str | None, typer.Option(help="Public edges, separated by commas, such as 0,18,65,120.")] = None,
    bins: Annotated[
        int | None,
        typer.Option(min=1, help="The number of cells of equal width between the bounds, which are given or found."),
    ] = None,
    lower: Lower = None,
    upper: Upper = None,
    values: Values = None,
    choices: ReleaseOptions,
) -> None:
    """The number of rows between public edges, or with each of the listed values.

    Example: snugdp query histogram people.parquet -c age --edges 0,18,65,120 --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.queries.statistics.histogram import Histogram

    source = _labels(asked.data, column)
    given: dict[str, Any]
    if edges is not None:
        given = {"edges": [edge.strip() for edge in edges.split(",")]}
    elif bins is not None:
        given = {"bins": bins, "bounds": asked.bounds(column, lower, upper)}
    else:
        given = {"values": asked.labels(column, values, source)}
        if given["values"] is None:
            raise ValueError(
                "say which cells there are: --edges, --bins, --values, or a --schema that lists the values"
            )
    query = Histogram(column=column, **given, **asked.budget)
    if "values" not in given:
        _numbers(asked.data, [column])
    asked.release(choices, "histogram", column, query, {name: str(each) for name, each in given.items()})


@releasing
def quantile_table(
    asked: RankOptions,
    *,
    bins: Annotated[int, typer.Option(min=2, help="Into how many parts of about equal size the column is cut.")] = 10,
    choices: ReleaseOptions,
) -> None:
    """A histogram whose edges are found privately: for columns without bounds, or with wide ones.

    Example: snugdp query quantile-table people.parquet -c income --bins 5 --epsilon 1
    """
    from snugdp.queries.order_statistics.quantile_table import QuantileTable

    asked.ask(choices, "quantile-table", QuantileTable, bins=bins)


@releasing
def quantile_interval(
    asked: RankOptions,
    *,
    q: Annotated[str, typer.Option("--q", help="Which quantile, between 0 and 1; 0.5 is the median.")] = "0.5",
    choices: ReleaseOptions,
) -> None:
    """A 95 % confidence interval for a quantile of the population.

    Example: snugdp query quantile-interval people.parquet -c income --q 0.9 --epsilon 1
    """
    from snugdp.queries.order_statistics.interval import QuantileInterval

    asked.ask(choices, "quantile-interval", QuantileInterval, q=q)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "count": count,
    "sum": total,
    "mean": mean,
    "variance": variance,
    "standard-deviation": standard_deviation,
    "covariance": covariance,
    "correlation": correlation,
    "proportion": proportion,
    "histogram": histogram,
    "quantile-table": quantile_table,
    "quantile-interval": quantile_interval,
}
