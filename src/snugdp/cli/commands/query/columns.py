"""``snugdp query`` and ``snugdp bounds``: a number, a label or bounds of columns, released or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.commands.query.groups import GroupOptions
from snugdp.cli.options import Data, Delta, Epsilon, PersonOptions, Relation, Rows
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing

if TYPE_CHECKING:
    from snugdp.propose.plan import Plan
    from snugdp.tables.schema.kinds import Column, Number
    from snugdp.tables.sources import Source

app = typer.Typer(
    no_args_is_help=True,
    help="Query columns: counts, sums, means, quantiles, histograms, groups, modes, votes and more.",
)

Step = Annotated[str, typer.Option(help="The public spacing of the values, such as 1 for whole years.")]
Method = Annotated[
    str,
    typer.Option(
        help='"exponential": a point drawn by its rank; "test": propose (--beta), test, release or refuse; "auto": the '
        "latter with --beta."
    ),
]
Replaced = Annotated[str, typer.Option("--neighbours", help='Must be "replace", the only relation with a proof.')]


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(PersonOptions):
    """Which column of which file."""

    data: Data
    column: Annotated[str, typer.Option("--column", "-c", help="The column.", show_default=False)]
    epsilon: Epsilon
    schema: Annotated[
        Path | None, typer.Option("--schema", help="A schema that describes the column, a TOML file.")
    ] = None

    def _cells(self, source: Source, kinds: dict[str, Column], choices: ReleaseOptions) -> Any:
        """The column by itself; with persons, or for a part, beside the column that says whose or where rows are."""
        from snugdp.cli import reading

        person, part = self.persons(self.schema)["person"], choices.part_column
        if person is not None:
            models.require_person(source, person)
        others = (name for name in (person, part) if name is not None and name in source.types)
        beside = tuple(dict.fromkeys(name for name in others if name not in kinds))
        found = reading.frame(source, kinds, beside=beside)
        return found if beside else found[self.column]

    def _tell(self, choices: ReleaseOptions, name: str, outcome: Any, plan: Plan, public: dict[str, Any]) -> None:
        value = outcome.value
        shown = {"query": name, "column": self.column, "value": value}
        as_text = ", ".join(f"{one:,.6g}" if isinstance(one, float) else str(one) for one in _several(value))
        words = None if value is None else f"Released: {name} of {self.column} = {as_text}"
        left_out = (("step", "0"), ("method", "auto"))
        public = {name: each for name, each in public.items() if (name, each) not in left_out}
        title = f"{name.replace('-', ' ').capitalize()} of {self.column}"
        told = ReleaseResult(
            words, shown, title=title, public={"column": self.column, **public}, within=self._within(name)
        )
        choices.tell(outcome, plan, told)

    def _within(self, name: str) -> tuple[float, float]:
        """Public bounds on the answer to this query."""
        return -math.inf, math.inf


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True, kw_only=True)
class BoundedOptions(ColumnOptions):
    """A column of numbers, between public bounds or not."""

    lower: Annotated[
        str | None, typer.Option(help="Public lower bound of the column, if there is one, known without the data.")
    ] = None
    upper: Annotated[str | None, typer.Option(help="Public upper bound of the column, if there is one.")] = None

    def _number(self) -> tuple[bool, Number]:
        """Whether a schema declares the column, and the bounds: of the options, of the schema, or none."""
        from snugdp.cli import reading
        from snugdp.tables.schema.kinds import Number

        ends = reading.bounds(self.schema, self.column, self.lower, self.upper)
        return self.schema is not None, Number(*ends)

    def _within(self, name: str) -> tuple[float, float]:
        kind = self._number()[1]
        low = -math.inf if kind.lower is None else float(kind.lower)
        high = math.inf if kind.upper is None else float(kind.upper)
        return (0.0, high - low) if name == "interquartile-range" else (low, high)

    def _source(self, declared: bool, kinds: dict[str, Column]) -> Source:
        from snugdp.cli import reading

        return reading.opened(self.data if declared else reading.of_numbers(self.data, [self.column]), kinds)

    def draw(self, choices: ReleaseOptions, name: str, make: Callable[..., Any], given: dict[str, Any]) -> None:
        """Release what is drawn by ranks: one pass over the file."""
        declared, kind = self._number()
        asked = {"column": self.column, "epsilon": self.epsilon, **self.persons(self.schema)}
        query = make(bounds=(kind.lower, kind.upper), **asked, **given)
        source = self._source(declared, {self.column: kind})
        plan = query.plan()
        outcome = query.release(source, ledger=choices.agreed(plan))
        self._tell(choices, name, outcome, plan, {"bounds": _between(kind), "epsilon": self.epsilon, **given})


def _between(kind: Number) -> str:
    from snugdp.cli.reading import bounds_text

    return bounds_text((kind.lower, kind.upper))


@dataclass(frozen=True, kw_only=True)
class DrawnOptions(BoundedOptions):
    """A column of numbers, of which points are drawn by their ranks."""

    step: Step = "0"
    neighbours: Relation = "add_remove"

    def release(self, choices: ReleaseOptions, name: str, make: Callable[..., Any], **more: Any) -> None:
        """Release them."""
        self.draw(choices, name, make, {**more, "step": self.step, "neighbours": self.neighbours})


@dataclass(frozen=True, kw_only=True)
class EndOptions(DrawnOptions):
    """A column of numbers, of which an end is drawn."""

    beyond: Annotated[int | None, typer.Option(help="About how many rows may lie beyond the answer.")] = None


@dataclass(frozen=True, kw_only=True)
class NumberOptions(BoundedOptions):
    """A column of numbers, of which one is proposed, tested and released."""

    beta: Annotated[str | None, typer.Option(help="The proposal: how far one row may move the answer.")] = None
    rows: Rows = None

    def release(self, choices: ReleaseOptions, name: str, make: Callable[..., Any], **more: Any) -> None:
        """Release a number: of a draw by ranks, or of a test, which reads the column whole."""
        from snugdp.core.guarantee import Neighbours

        if "method" in more and (more["method"], self.beta) in (("auto", None), ("exponential", None)):
            self.draw(choices, name, make, more)
            return
        given = {"epsilon": self.epsilon, "beta": self.beta, **more}
        (declared, kind), rows = self._number(), self.rows
        kinds: dict[str, Column] = {self.column: kind}
        bounds = kind.lower, kind.upper
        persons = self.persons(self.schema)
        query = make(bounds=bounds, rows=rows, **given, **persons)  # what is wrong with it is said before a row is read
        source = self._source(declared, kinds)
        values = None
        if rows is None and Neighbours(given["neighbours"]) is Neighbours.REPLACE:
            if persons["person"] is not None:
                raise ValueError("give --rows, the number of persons: it is public when neighbours replace a person")
            values = self._cells(source, kinds, choices)
            rows = max(len(values), 1)  # which is public under this relation
            query = make(bounds=bounds, rows=rows, **given)
        plan = query.plan()
        account = choices.agreed(plan)
        values = self._cells(source, kinds, choices) if values is None else values
        outcome = query.release(values, ledger=account)
        self._tell(choices, name, outcome, plan, {"bounds": _between(kind), **given, "rows": rows})


@dataclass(frozen=True, kw_only=True)
class MiddleOptions(NumberOptions):
    """A column of numbers, of which a quantile is drawn by its rank, or tested; or one of every group is drawn."""

    method: Method = "auto"
    delta: Delta = "1e-6"
    step: Step = "0"
    neighbours: Relation = "add_remove"

    def ask(
        self,
        choices: ReleaseOptions,
        name: str,
        make: Callable[..., Any],
        groups: GroupOptions,
        statistic: str,
        **q: str,
    ) -> None:
        """Release it; ``statistic``: its name where it is asked of every group."""
        budget: dict[str, Any] = {"delta": self.delta, "neighbours": self.neighbours}
        if not groups.wanted:
            self.release(choices, name, make, **q, method=self.method, step=self.step, **budget)
            return
        if self.beta is not None or self.step != "0":
            raise ValueError("answers by group are drawn by rank on the finest grid: leave out --beta and --step")
        _, kind = self._number()
        asked: dict[str, Any] = {self.column: [statistic]}
        bounds: dict[str, Any] = {self.column: (kind.lower, kind.upper)}
        budget |= {"epsilon": self.epsilon, **self.persons(self.schema)}
        groups.release(choices, self.data, asked, bounds, self.schema, **budget)


@dataclass(frozen=True, kw_only=True)
class LabelOptions(ColumnOptions):
    """A column of labels."""

    values: Annotated[
        str | None, typer.Option(help="All possible values, separated by commas; by default those of the schema.")
    ] = None

    def release(self, choices: ReleaseOptions, name: str, make: Callable[..., Any], labels: str, **more: Any) -> None:
        """Release a label. ``labels``: what the query calls its values."""
        from snugdp.cli import reading
        from snugdp.tables.schema.kinds import Boolean, Category
        from snugdp.tables.sources import open_source

        source = None
        if self.values is not None:
            source = open_source(self.data)
            kind = reading.listed(self.column, [value.strip() for value in self.values.split(",")], source)
        else:
            declared = reading.declared(self.schema, self.column)
            kind = Category([False, True]) if isinstance(declared, Boolean) else declared  # type: ignore[assignment]
            if not isinstance(kind, Category) or kind.is_open:
                raise ValueError("the values are needed: give --values, or a --schema that lists them")
        kinds: dict[str, Column] = {self.column: kind}
        query = make(epsilon=self.epsilon, **{labels: kind.levels}, **more, **self.persons(self.schema))
        source = reading.opened(self.data if source is None else source, kinds)
        public, plan = {"values": list(kind.levels)}, query.plan()
        account = choices.agreed(plan)
        outcome = query.release(self._cells(source, kinds, choices), ledger=account)
        self._tell(choices, name, outcome, plan, public)


@app.command()
@releasing
def median(asked: MiddleOptions, *, groups: GroupOptions, choices: ReleaseOptions) -> None:
    """The median of a column of numbers. It spends no delta unless --beta is given, and needs a few dozen rows.

    Example: snugdp query median people.parquet -c age --step 1 --epsilon 0.5
    """
    from snugdp.queries.order_statistics.quantiles import Median

    asked.ask(choices, "median", Median, groups, "median")


@app.command()
@releasing
def quantile(
    asked: MiddleOptions,
    *,
    q: Annotated[str, typer.Option("--q", help="Which quantile, such as 0.9.", show_default=False)],
    groups: GroupOptions,
    choices: ReleaseOptions,
) -> None:
    """A quantile of a column of numbers. It spends no delta unless --beta is given, and needs a few dozen rows.

    Example: snugdp query quantile people.parquet -c income --q 0.9 --epsilon 0.5
    """
    from snugdp.queries.order_statistics.quantiles import Quantile

    asked.ask(choices, "quantile", Quantile, groups, f"quantile_{q}", q=q)


@app.command()
@releasing
def quantiles(
    asked: DrawnOptions,
    *,
    q: Annotated[list[str], typer.Option("--q", help="A quantile, such as 0.25; repeat for more.")],
    delta: Delta = "0",
    choices: ReleaseOptions,
) -> None:
    """Several quantiles of a column of numbers, paid for together.

    Example: snugdp query quantiles people.parquet -c age --q 0.25 --q 0.5 --q 0.75 --schema people.toml --epsilon 1
    """
    from snugdp.queries.order_statistics.quantiles import Quantiles

    asked.release(choices, "quantiles", Quantiles, q=q, delta=delta)


@app.command("interquartile-range")
@releasing
def interquartile_range(asked: DrawnOptions, *, choices: ReleaseOptions) -> None:
    """The distance between the quartiles of a column of numbers.

    Example: snugdp query interquartile-range people.parquet -c income --epsilon 0.5
    """
    from snugdp.queries.order_statistics.quantiles import InterquartileRange

    asked.release(choices, "interquartile-range", InterquartileRange)


@app.command()
@releasing
def minimum(asked: EndOptions, *, choices: ReleaseOptions) -> None:
    """A lower end of a column of numbers, below which only a few rows lie.

    Example: snugdp query minimum people.parquet -c age --lower 0 --upper 120 --step 1 --epsilon 0.5
    """
    from snugdp.queries.order_statistics.extremes import Minimum

    asked.release(choices, "minimum", Minimum, beyond=asked.beyond)


@app.command()
@releasing
def maximum(asked: EndOptions, *, choices: ReleaseOptions) -> None:
    """An upper end of a column of numbers, above which only a few rows lie.

    Example: snugdp query maximum people.parquet -c age --lower 0 --upper 120 --step 1 --epsilon 0.5
    """
    from snugdp.queries.order_statistics.extremes import Maximum

    asked.release(choices, "maximum", Maximum, beyond=asked.beyond)


@app.command("trimmed-mean")
@releasing
def trimmed_mean(
    asked: NumberOptions,
    *,
    delta: Delta = "0",
    trim: Annotated[str, typer.Option(help="The share of rows to drop at each end.")] = "0.1",
    neighbours: Replaced = "replace",
    choices: ReleaseOptions,
) -> None:
    """The mean of a column without its smallest and largest values. The number of rows is public.

    Without --beta it is never refused; with --beta it needs a --delta above 0.

    Example: snugdp query trimmed-mean people.parquet -c income --schema people.toml --epsilon 0.5 --trim 0.1
    """
    from snugdp.queries.order_statistics.robust import TrimmedMean

    asked.release(choices, "trimmed-mean", TrimmedMean, trim=trim, delta=delta, neighbours=neighbours)


@app.command()
@releasing
def mode(
    asked: LabelOptions, *, delta: Delta = "1e-6", neighbours: Relation = "add_remove", choices: ReleaseOptions
) -> None:
    """The most frequent of the listed values, exactly, or a refusal.

    Example: snugdp query mode people.parquet -c commute --values car,train,bicycle --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.queries.labels import Mode

    asked.release(choices, "mode", Mode, "categories", delta=delta, neighbours=neighbours)


@app.command()
@releasing
def vote(
    asked: LabelOptions, *, delta: Delta = "0", neighbours: Relation = "add_remove", choices: ReleaseOptions
) -> None:
    """The most frequent of the listed values after noise on every count. It is never refused.

    Example: snugdp query vote people.parquet -c commute --values car,train,bicycle --epsilon 0.5
    """
    from snugdp.queries.labels import Vote

    asked.release(choices, "vote", Vote, "candidates", delta=delta, neighbours=neighbours)


@releasing
def bounds(
    data: Data,
    *,
    column: Annotated[list[str], typer.Option("--column", "-c", help="A column of numbers; repeat for more.")],
    epsilon: Annotated[str, typer.Option(help="The privacy budget for all columns together, such as 0.5.")],
    outside: Annotated[str, typer.Option(help="The share of rows that may lie beyond each bound.")] = "0.01",
    neighbours: Relation = "add_remove",
    persons: PersonOptions,
    choices: ReleaseOptions,
) -> None:
    """Estimate bounds privately and print them as sections of a schema. This spends budget; the plan comes first.

    Example: snugdp bounds people.parquet --column age --column income --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.cli import reading
    from snugdp.queries.bounds.private import Bounds

    given: dict[str, Any] = {"epsilon": epsilon, "outside": outside, "neighbours": neighbours}
    query = Bounds(columns=column, **given, **persons.persons())
    source = reading.of_numbers(data, column)
    plan = query.plan()
    outcome = query.release(source, ledger=choices.agreed(plan, aside=True))
    estimated = {} if outcome.value is None else outcome.value.columns
    shown = {name: {"lower": one.lower, "upper": one.upper} for name, one in estimated.items()}
    listed = ", ".join(column)
    public = {"columns": listed, "outside": outside}
    result = ReleaseResult(None, {"bounds": shown}, title=f"Bounds of {listed}", public=public, aside=True)
    choices.tell(outcome, plan, result)
    if outcome.value is not None and not choices.as_json:
        typer.echo(outcome.value.to_toml(), nl=False)
