"""``snugdp describe``: all columns of a table at a glance, for one charge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.options import Data, Delta, Epsilon, PersonOptions, RawText, Relation, Rows
from snugdp.cli.releases import ReleaseOptions, ReleaseResult, releasing
from snugdp.cli.terminal import harmless, say

if TYPE_CHECKING:
    from snugdp.queries.description.result import Description, TextTable

_FORMS = (".parquet", ".csv")


@releasing
def describe(
    data: Data,
    schema: Annotated[
        Path | None,
        typer.Argument(
            help="The schema, a TOML file, as 'snugdp schema init' writes one; what it leaves open is found privately."
        ),
    ] = None,
    *,
    epsilon: Epsilon,
    delta: Delta = "1e-6",
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="Only this column; repeat for more.")
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option("--statistic", "-s", help="Of numbers only this: mean, standard-deviation or quantiles; repeat."),
    ] = None,
    q: Annotated[
        list[str] | None, typer.Option("--q", help="Only this quantile, such as 0.5; repeat for more.")
    ] = None,
    step: Annotated[
        list[str] | None, typer.Option("--step", help="The public spacing of a column, such as age=1; repeat.")
    ] = None,
    rows: Rows = None,
    neighbours: Relation = "add_remove",
    persons: PersonOptions,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the table of columns to this Parquet or CSV file.")
    ] = None,
    raw_text: RawText = False,
    choices: ReleaseOptions,
) -> None:
    """Describe all columns: rows, missing cells, means, deviations, quantiles, and the counts of listed values.

    One charge: the budget is divided among the columns, and the plan says how. Without a schema a part of it finds out
    privately what the columns hold, their bounds and their values; identifiers and free text are left out.

    Example: snugdp describe people.csv --epsilon 1

    Example: snugdp describe people.parquet people.toml --epsilon 1 --ledger people.ledger
    """
    from snugdp.cli.reading import opened
    from snugdp.queries.description.describe import QUANTILES, STATISTICS, Describe
    from snugdp.serial.files import write_table
    from snugdp.tables.sources import open_source

    if output is not None and output.suffix not in _FORMS:
        raise ValueError(f"{output} must end in {' or '.join(_FORMS)}")
    query = Describe(
        schema=schema,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        columns=column,
        statistics=STATISTICS if statistic is None else [name.replace("-", "_") for name in statistic],
        quantiles=q or QUANTILES,
        steps=_steps(step or []),
        rows=rows,
        **persons.persons(),
    )
    table = open_source(data)
    query = query.for_table(table)
    source = opened(table, query.described.columns)
    plan = query.plan()
    outcome = query.release(source, ledger=choices.agreed(plan))
    public = {"columns": ", ".join(query.described.columns), "schema": "none" if schema is None else str(schema)}
    shown: dict[str, Any] = {"query": "describe"}
    files = {"table": None if outcome.refused else output}
    if (description := outcome.value) is not None:
        shown |= _as_json(description)
        if output is not None:
            write_table(description.to_polars(), output, raw_text=raw_text)
        if not choices.as_json:
            _show(description)
    choices.tell(outcome, plan, ReleaseResult(None, shown, files, title="Description", public=public))


def _steps(given: list[str]) -> dict[str, Any]:
    from snugdp.cli.models import pairs_of

    return dict(pairs_of(given, "a step is written COLUMN=NUMBER, such as --step age=1"))


def _as_json(found: Description) -> dict[str, Any]:
    tables = {"columns": found.columns, "values": found.values}
    return {
        "rows": {"value": found.rows.value, "error": found.rows.error},
        "left_out": dict(found.left_out),
        **{name: [dict(zip(table.names, line, strict=True)) for line in table.lines] for name, table in tables.items()},
    }


def _show(found: Description) -> None:
    """Tables of numbers, as wide as the terminal, and one of listed values; plain lines for a file."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"[bold]{found.rows_text}[/bold]" if console.is_terminal else found.rows_text)
    for text in found.texts():
        whole = not console.is_terminal or text.is_words(len(text.heads) - 1)
        for part in [text] if whole else text.within(console.width - 2):
            typer.echo()
            console.print(_drawn(part)) if console.is_terminal else say(str(part))
    typer.echo("\nNoise stays below what follows ± in 19 of 20 cases." + found.ranks_text)
    for words in filter(None, (found.hidden_text, found.left_out_text)):
        say(words)


def _drawn(text: TextTable) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for place, head in enumerate(text.heads):
        justify: Any = "left" if text.is_words(place) else "right"
        table.add_column(
            head, justify=justify, style="bold cyan" if place == 0 else None, no_wrap=head != "most frequent"
        )
    for line in text.lines:
        table.add_row(*(escape(harmless(cell)).replace("±", "[dim]±[/dim]") for cell in line))
    return table
