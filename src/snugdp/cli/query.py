"""``snugdp query``: one number or one label about a column, released or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli import models
from snugdp.cli.releases import Data, Delta, Epsilon, Rows, Till, Told, releasing

if TYPE_CHECKING:
    from snugdp.propose.plan import Plan
    from snugdp.tables.schema.kinds import Column as Kind

app = typer.Typer(
    no_args_is_help=True, help="Query one column: its median, a quantile, its trimmed mean, its mode or a vote."
)

Column = Annotated[str, typer.Option("--column", "-c", help="The column.", show_default=False)]
Lower = Annotated[str | None, typer.Option(help="Public lower bound of the column, known without the data.")]
Upper = Annotated[str | None, typer.Option(help="Public upper bound of the column.")]
SchemaFile = Annotated[Path | None, typer.Option("--schema", help="A schema that describes the column, a TOML file.")]
Beta = Annotated[str | None, typer.Option(help="The proposal: how far one row may move the answer.")]
Step = Annotated[str, typer.Option(help="The public spacing of the values, such as 1 for whole years.")]
Values = Annotated[
    str | None, typer.Option(help="All possible values, separated by commas; by default those of the schema.")
]
Replaced = Annotated[str, typer.Option("--neighbours", help='Must be "replace", the only relation with a proof.')]


@app.command()
@releasing
def median(
    data: Data,
    *,
    till: Till,
    column: Column,
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    lower: Lower = None,
    upper: Upper = None,
    schema: SchemaFile = None,
    beta: Beta = None,
    rows: Rows = None,
    step: Step = "0",
    neighbours: models.Relation = "add_remove",
) -> None:
    """The median of a column of numbers.

    Example: snugdp query median people.parquet -c age --lower 0 --upper 120 --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.queries.robust import Median

    asked = _Asked("median", data, column, schema, till)
    given = {"epsilon": epsilon, "delta": delta, "beta": beta, "step": step, "neighbours": neighbours}
    asked.number(Median, (lower, upper), rows, given)


@app.command()
@releasing
def quantile(
    data: Data,
    *,
    till: Till,
    column: Column,
    q: Annotated[str, typer.Option("--q", help="Which quantile, such as 0.9.", show_default=False)],
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    lower: Lower = None,
    upper: Upper = None,
    schema: SchemaFile = None,
    beta: Beta = None,
    rows: Rows = None,
    step: Step = "0",
    neighbours: Replaced = "replace",
) -> None:
    """A quantile of a column of numbers. The number of rows is public.

    Example: snugdp query quantile people.parquet -c income --q 0.9 --lower 0 --upper 500000 --epsilon 0.5 --beta 500
    """
    from snugdp.queries.robust import Quantile

    asked = _Asked("quantile", data, column, schema, till)
    given = {"q": q, "epsilon": epsilon, "delta": delta, "beta": beta, "step": step, "neighbours": neighbours}
    asked.number(Quantile, (lower, upper), rows, given)


@app.command("trimmed-mean")
@releasing
def trimmed_mean(
    data: Data,
    *,
    till: Till,
    column: Column,
    epsilon: Epsilon,
    delta: Delta = "0",
    trim: Annotated[str, typer.Option(help="The share of rows to drop at each end.")] = "0.1",
    lower: Lower = None,
    upper: Upper = None,
    schema: SchemaFile = None,
    beta: Beta = None,
    rows: Rows = None,
    neighbours: Replaced = "replace",
) -> None:
    """The mean of a column without its smallest and largest values. The number of rows is public.

    Without --beta it is never refused; with --beta it needs a --delta above 0.

    Example: snugdp query trimmed-mean people.parquet -c income --schema people.toml --epsilon 0.5 --trim 0.1
    """
    from snugdp.queries.robust import TrimmedMean

    asked = _Asked("trimmed-mean", data, column, schema, till)
    given = {"trim": trim, "epsilon": epsilon, "delta": delta, "beta": beta, "neighbours": neighbours}
    asked.number(TrimmedMean, (lower, upper), rows, given)


@app.command()
@releasing
def mode(
    data: Data,
    *,
    till: Till,
    column: Column,
    values: Values = None,
    schema: SchemaFile = None,
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    neighbours: models.Relation = "add_remove",
) -> None:
    """The most frequent of the listed values, exactly, or a refusal.

    Example: snugdp query mode people.parquet -c commute --values car,train,bicycle --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.queries.labels import Mode

    asked = _Asked("mode", data, column, schema, till)
    given = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours}
    asked.label(lambda labels: Mode(categories=labels, **given), values)


@app.command()
@releasing
def vote(
    data: Data,
    *,
    till: Till,
    column: Column,
    values: Values = None,
    schema: SchemaFile = None,
    epsilon: Epsilon,
    delta: Delta = "0",
    neighbours: models.Relation = "add_remove",
) -> None:
    """The most frequent of the listed values after noise on every count. It is never refused.

    Example: snugdp query vote people.parquet -c commute --values car,train,bicycle --epsilon 0.5
    """
    from snugdp.queries.labels import Vote

    asked = _Asked("vote", data, column, schema, till)
    asked.label(lambda labels: Vote(candidates=labels, epsilon=epsilon, delta=delta, neighbours=neighbours), values)


@dataclass(frozen=True)
class _Asked:
    """One question about one column of a file."""

    name: str
    file: object
    column: str
    schema: Path | None
    till: Till

    def number(
        self, make: Callable[..., Any], ends: tuple[str | None, str | None], rows: int | None, given: dict[str, Any]
    ) -> None:
        """A query for numbers."""
        from snugdp.cli import reading
        from snugdp.core.guarantee import Neighbours
        from snugdp.tables.schema.kinds import Number

        known = self._kind()
        if known is not None and not isinstance(known, Number):
            raise TypeError(f'the schema says that column "{self.column}" is not a number: ask for its mode or a vote')
        low, high = (end if end is not None else bound for end, bound in zip(ends, _bounds(known), strict=True))
        if low is None or high is None:
            raise ValueError(
                "bounds are needed: give --lower and --upper, or a --schema that has them; 'snugdp bounds' estimates "
                "them privately"
            )
        kind = Number(low, high)
        kinds: dict[str, Kind] = {self.column: kind}
        query = make(bounds=(low, high), rows=rows, **given)  # what is wrong with it is said before a row is read
        if known is None:
            reading.of_numbers(self.file, [self.column])
        source = reading.opened(self.file, kinds)
        values = None
        if rows is None and Neighbours(given["neighbours"]) is Neighbours.REPLACE:
            values = reading.frame(source, kinds)[self.column]
            rows = max(len(values), 1)  # which is public under this relation
            query = make(bounds=(low, high), rows=rows, **given)
        public = {"bounds": f"{float(kind.lower):,.10g} to {float(kind.upper):,.10g}", **given, "rows": rows}
        plan = query.plan()
        account = self.till.agreed(plan)
        values = reading.frame(source, kinds)[self.column] if values is None else values
        self._tell(query.release(values, ledger=account), plan, public)

    def label(self, make: Callable[[Sequence[Any]], Any], values: str | None) -> None:
        """A query for labels."""
        from snugdp.cli import reading
        from snugdp.tables.schema.kinds import Boolean, Category
        from snugdp.tables.sources import open_source

        if values is not None:
            kind = reading.listed(self.column, [value.strip() for value in values.split(",")], open_source(self.file))
        else:
            known = self._kind()
            kind = Category([False, True]) if isinstance(known, Boolean) else known  # type: ignore[assignment]
            if not isinstance(kind, Category):
                raise ValueError("the values are needed: give --values, or a --schema that lists them")
        kinds: dict[str, Kind] = {self.column: kind}
        query = make(kind.values)
        source = reading.opened(self.file, kinds)
        public, plan = {"values": list(kind.values)}, query.plan()
        account = self.till.agreed(plan)
        self._tell(query.release(reading.frame(source, kinds)[self.column], ledger=account), plan, public)

    def _kind(self) -> Kind | None:
        from snugdp.tables.schema.schema import Schema

        if self.schema is None:
            return None
        columns = Schema.from_toml(self.schema).columns
        if self.column not in columns:
            raise ValueError(f'{self.schema} has no column "{self.column}"; it has {", ".join(columns)}')
        return columns[self.column]

    def _tell(self, outcome: Any, plan: Plan, public: dict[str, Any]) -> None:
        value = outcome.value
        shown = {"query": self.name, "column": self.column, "value": value}
        as_text = f"{value:,.6g}" if isinstance(value, float) else str(value)
        words = None if value is None else f"Released: {self.name} of {self.column} = {as_text}"
        public = {name: each for name, each in public.items() if (name, each) != ("step", "0")}
        title = f"{self.name.replace('-', ' ').capitalize()} of {self.column}"
        self.till.tell(outcome, plan, Told(words, shown, title=title, public={"column": self.column, **public}))


def _bounds(kind: Kind | None) -> tuple[Any, Any]:
    return (None, None) if kind is None else (getattr(kind, "lower", None), getattr(kind, "upper", None))
