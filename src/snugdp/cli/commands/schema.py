"""``snugdp schema``: write a schema to fill in, and hold one against a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import Data, Force, Multiline, SchemaFile, can_write, new_file

app = typer.Typer(no_args_is_help=True, help="What is public about a table: columns, bounds, target.")


@app.command()
def init(
    file: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    force: Force = False,
    multiline: Multiline = True,
) -> None:
    """Write a schema to fill in, from the names and declared types of the columns. No row is read.

    Example: snugdp schema init people.parquet -o people.toml
    """
    from snugdp.cli.reading import table
    from snugdp.tables.schema.toml import template
    from snugdp.tables.sources import open_source

    with in_plain_words():
        can_write(output, read=(file,))
        types = open_source(table(file, multiline)).types
        if not types:
            raise ValueError(f"{file} has no columns to describe")
        if any("\ufffd" in name for name in types):
            raise ValueError(f"the column names in {file} are not UTF-8: save the file in that encoding first")
        text = template(types)
        if output is None:
            typer.echo(text, nl=False)
            return
        new_file(output, force)
        output.write_text(text, encoding="utf-8")
    typer.echo(f"{output}: fill in the bounds and values, then run 'snugdp schema check {output} {file}'")


@app.command()
def check(
    schema: SchemaFile,
    file: Annotated[str | None, typer.Argument(help="A table to check it against.")] = None,
    multiline: Multiline = True,
) -> None:
    """Check that a schema is complete and that a table has its columns. No row is read.

    Example: snugdp schema check people.toml people.parquet
    """
    from snugdp.cli.reading import table
    from snugdp.tables.passes.moments import GramPass
    from snugdp.tables.schema.schema import Schema
    from snugdp.tables.sources import open_source

    with in_plain_words():
        read = Schema.from_toml(schema)
        if file is not None:
            source = open_source(table(file, multiline))
            source.check(GramPass(read))  # which never quotes a first line that may be a row
    aim = f", target {read.target}" if read.target is not None else ""
    typer.echo(f"{schema}: {len(read.columns)} columns{aim}; a row becomes a vector of {len(read.features)} entries")
