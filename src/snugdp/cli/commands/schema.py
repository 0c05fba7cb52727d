"""``snugdp schema``: write a schema to begin with, and hold one against a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.errors import ERROR, fail, in_plain_words
from snugdp.cli.options import AsJson, Data, Force, Multiline, SchemaFile, can_write, new_file
from snugdp.cli.terminal import say

if TYPE_CHECKING:
    from snugdp.tables.schema.kinds import Column

app = typer.Typer(no_args_is_help=True, help="What is public about a table: columns, bounds, target.")


@app.command()
def init(
    file: Data,
    *,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    person: Annotated[
        str | None, typer.Option(help="The column that says whose rows belong together, such as customer_id.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    force: Force = False,
    multiline: Multiline = True,
) -> None:
    """Write a schema that can be used as it is, from the names and declared types of the columns. No row is read.

    Bounds and values are left to be found privately; write down those that are known without the data. Identifiers,
    free text and what cannot be read are left out, each with its reason.

    Example: snugdp schema init people.parquet -o people.toml
    """
    from snugdp.cli.models import require_person
    from snugdp.cli.reading import table
    from snugdp.tables.schema.infer import inferred
    from snugdp.tables.schema.toml import template
    from snugdp.tables.sources import open_source

    with in_plain_words():
        can_write(output, read=(file,))
        source = open_source(table(file, multiline))
        if not source.types:
            raise ValueError(f"{file} has no columns to describe")
        if any("\ufffd" in name for name in source.types):
            raise ValueError(f"the column names in {file} are not UTF-8: save the file in that encoding first")
        require_person(source, person)
        schema, left_out = inferred({name: kind for name, kind in source.types.items() if name != person}, target)
        text = template(schema.columns, target, left_out, person)
        if output is None:
            typer.echo(text, nl=False)
            return
        new_file(output, force)
        output.write_text(text, encoding="utf-8")
    typer.echo(f"{output}: it can be used as it is; declare in it what is known without the data")


@app.command()
def check(
    schema: SchemaFile,
    file: Annotated[str | None, typer.Argument(help="A table to check it against.")] = None,
    multiline: Multiline = True,
    as_json: AsJson = False,
) -> None:
    """List everything that is wrong with a schema, by itself or for a table. No row is read.

    Example: snugdp schema check people.toml people.parquet
    """
    with in_plain_words():
        found, gaps = _read(schema)
        if file is not None:
            person = {} if found.get("person") is None else {found["person"]: None}
            gaps += _beside({**found.get("columns", {}), **person}, file, multiline)
    facts = _facts(found, gaps)
    if as_json:
        typer.echo(json.dumps({"schema": str(schema), **facts, "gaps": gaps}))
        raise typer.Exit(ERROR if gaps else 0)
    if gaps:
        fail("\n".join(f"Error: {schema}: {gap}" for gap in gaps), ERROR)
    aim = f", target {facts['target']}" if facts["target"] is not None else ""
    size = f"; a row becomes a vector of {facts['entries']} entries" if facts["entries"] is not None else ""
    whose = f", persons by {facts['person']}" if facts["person"] is not None else ""
    say(f"{schema}: {len(facts['columns'])} columns{aim}{whose}{size}")
    if facts["open"]:
        say(f"To be found privately: {', '.join(facts['open'])}")


def _read(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The parts of a schema, and what is wrong with the others."""
    from snugdp.tables.schema.schema import Schema
    from snugdp.tables.schema.toml import inspected

    _, parts, problems = inspected(path)
    gaps = [str(problem) for problem in problems]
    target, columns = parts.get("target"), parts.get("columns", {})
    try:
        if not gaps:
            Schema(**parts)
        elif isinstance(target, str) and target not in columns:
            gaps.append(f'the target "{target}" is not one of the columns')
    except (TypeError, ValueError) as problem:
        gaps.append(str(problem))
    return parts, gaps


def _beside(columns: Mapping[str, Column | None], file: str, multiline: bool) -> list[str]:
    """What is wrong beside a table. Names of a CSV file are not quoted: its first line may be a row."""
    from snugdp.cli.reading import table
    from snugdp.tables.schema.schema import mismatches
    from snugdp.tables.sources import open_source

    source = open_source(table(file, multiline))
    types = {name: source.type_for_reading(name) for name in source.types}
    absent = [f'{source.name} has no column "{name}"' for name in columns if name not in types]
    try:
        source.verify()
    except ValueError as problem:
        return [*absent, str(problem)]
    return absent + mismatches({name: column for name, column in columns.items() if column is not None}, types)


def _facts(parts: Mapping[str, Any], gaps: list[str]) -> dict[str, Any]:
    from snugdp.tables.schema.schema import Schema

    columns = parts.get("columns", {})
    whole = Schema(**parts) if not gaps else None
    return {
        "columns": list(columns),
        "target": parts.get("target"),
        "person": parts.get("person"),
        "open": [name for name, column in columns.items() if column.is_open],
        "entries": len(whole.features) if whole is not None and whole.complete else None,
    }
