"""``snugdp query`` and ``snugdp bounds``: a number, a label or bounds of columns, released or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.commands.groups import group_by
from snugdp.cli.options import Data, Delta, Epsilon, OptionGroup, Relation, Rows
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing

if TYPE_CHECKING:
    from snugdp.propose.plan import Plan
    from snugdp.tables.schema.kinds import Column

app = typer.Typer(
    no_args_is_help=True, help="Query columns: counts, sums, means, quantiles, histograms, modes, votes and more."
)

Step = Annotated[str, typer.Option(help="The public spacing of the values, such as 1 for whole years.")]
Replaced = Annotated[str, typer.Option("--neighbours", help='Must be "replace", the only relation with a proof.')]


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(OptionGroup):
    """Which column of which file."""

    data: Data
    column: Annotated[str, typer.Option("--column", "-c", help="The column.", show_default=False)]
    epsilon: Epsilon
    schema: Annotated[
        Path | None, typer.Option("--schema", help="A schema that describes the column, a TOML file.")
    ] = None

    def _declared(self) -> Column | None:
        from snugdp.tables.schema.schema import Schema

        if self.schema is None:
            return None
        columns = Schema.from_toml(self.schema).columns
        if self.column not in columns:
            raise ValueError(f'{self.schema} has no column "{self.column}"; it has {", ".join(columns)}')
        return columns[self.column]

    def _tell(self, choices: ReleaseOptions, name: str, outcome: Any, plan: Plan, public: dict[str, Any]) -> None:
        value = outcome.value
        shown = {"query": name, "column": self.column, "value": value}
        as_text = f"{value:,.6g}" if isinstance(value, float) else str(value)
        words = None if value is None else f"Released: {name} of {self.column} = {as_text}"
        public = {name: each for name, each in public.items() if (name, each) != ("step", "0")}
        title = f"{name.replace('-', ' ').capitalize()} of {self.column}"
        choices.tell(outcome, plan, ReleaseResult(words, shown, title=title, public={"column": self.column, **public}))


@dataclass(frozen=True, kw_only=True)
class NumberOptions(ColumnOptions):
    """A column of numbers."""

    lower: Annotated[str | None, typer.Option(help="Public lower bound of the column, known without the data.")] = None
    upper: Annotated[str | None, typer.Option(help="Public upper bound of the column.")] = None
    beta: Annotated[str | None, typer.Option(help="The proposal: how far one row may move the answer.")] = None
    rows: Rows = None

    def release(self, choices: ReleaseOptions, name: str, make: Callable[..., Any], **more: Any) -> None:
        """Release a number."""
        from snugdp.cli import reading
        from snugdp.core.guarantee import Neighbours
        from snugdp.tables.schema.kinds import Number

        given = {"epsilon": self.epsilon, "beta": self.beta, **more}
        declared, rows = self._declared(), self.rows
        if declared is not None and not isinstance(declared, Number):
            raise TypeError(f'the schema says that column "{self.column}" is not a number: ask for its mode or a vote')
        low = self.lower if self.lower is not None or declared is None else declared.lower
        high = self.upper if self.upper is not None or declared is None else declared.upper
        if low is None or high is None:
            raise ValueError(
                "bounds are needed: give --lower and --upper, or a --schema that has them; 'snugdp bounds' estimates "
                "them privately"
            )
        kind = Number(low, high)
        kinds: dict[str, Column] = {self.column: kind}
        query = make(bounds=(low, high), rows=rows, **given)  # what is wrong with it is said before a row is read
        source = reading.opened(
            self.data if declared is not None else reading.of_numbers(self.data, [self.column]), kinds
        )
        values = None
        if rows is None and Neighbours(given["neighbours"]) is Neighbours.REPLACE:
            values = reading.frame(source, kinds)[self.column]
            rows = max(len(values), 1)  # which is public under this relation
            query = make(bounds=(low, high), rows=rows, **given)
        public = {"bounds": f"{float(kind.lower):,.10g} to {float(kind.upper):,.10g}", **given, "rows": rows}
        plan = query.plan()
        account = choices.agreed(plan)
        values = reading.frame(source, kinds)[self.column] if values is None else values
        self._tell(choices, name, query.release(values, ledger=account), plan, public)


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
            declared = self._declared()
            kind = Category([False, True]) if isinstance(declared, Boolean) else declared  # type: ignore[assignment]
            if not isinstance(kind, Category):
                raise ValueError("the values are needed: give --values, or a --schema that lists them")
        kinds: dict[str, Column] = {self.column: kind}
        query = make(epsilon=self.epsilon, **{labels: kind.values}, **more)
        source = reading.opened(self.data if source is None else source, kinds)
        public, plan = {"values": list(kind.values)}, query.plan()
        account = choices.agreed(plan)
        outcome = query.release(reading.frame(source, kinds)[self.column], ledger=account)
        self._tell(choices, name, outcome, plan, public)


@app.command()
@releasing
def median(
    asked: NumberOptions,
    *,
    delta: Delta = "1e-6",
    step: Step = "0",
    neighbours: Relation = "add_remove",
    choices: ReleaseOptions,
) -> None:
    """The median of a column of numbers.

    Example: snugdp query median people.parquet -c age --lower 0 --upper 120 --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.queries.quantiles import Median

    asked.release(choices, "median", Median, delta=delta, step=step, neighbours=neighbours)


@app.command()
@releasing
def quantile(
    asked: NumberOptions,
    *,
    q: Annotated[str, typer.Option("--q", help="Which quantile, such as 0.9.", show_default=False)],
    delta: Delta = "1e-6",
    step: Step = "0",
    neighbours: Replaced = "replace",
    choices: ReleaseOptions,
) -> None:
    """A quantile of a column of numbers. The number of rows is public.

    Example: snugdp query quantile people.parquet -c income --q 0.9 --lower 0 --upper 500000 --epsilon 0.5 --beta 500
    """
    from snugdp.queries.quantiles import Quantile

    asked.release(choices, "quantile", Quantile, q=q, delta=delta, step=step, neighbours=neighbours)


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
    from snugdp.queries.robust import TrimmedMean

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


app.command("group-by")(group_by)


@releasing
def bounds(
    data: Data,
    *,
    column: Annotated[list[str], typer.Option("--column", "-c", help="A column of numbers; repeat for more.")],
    epsilon: Annotated[str, typer.Option(help="The privacy budget for all columns together, such as 0.5.")],
    outside: Annotated[str, typer.Option(help="The share of rows that may lie beyond each bound.")] = "0.01",
    neighbours: Relation = "add_remove",
    choices: ReleaseOptions,
) -> None:
    """Estimate bounds privately and print them as sections of a schema. This spends budget; the plan comes first.

    Example: snugdp bounds people.parquet --column age --column income --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.cli import reading
    from snugdp.queries.bounds import Bounds

    query = Bounds(columns=column, epsilon=epsilon, outside=outside, neighbours=neighbours)
    source = reading.of_numbers(data, column)
    plan = query.plan()
    outcome = query.release(source, ledger=choices.agreed(plan, aside=True))
    if outcome.value is None:
        raise AssertionError("bounds are never refused")
    shown = {name: {"lower": one.lower, "upper": one.upper} for name, one in outcome.value.columns.items()}
    listed = ", ".join(column)
    public = {"columns": listed, "outside": outside}
    result = ReleaseResult(None, {"bounds": shown}, title=f"Bounds of {listed}", public=public, aside=True)
    choices.tell(outcome, plan, result)
    if not choices.as_json:
        typer.echo(outcome.value.to_toml(), nl=False)
