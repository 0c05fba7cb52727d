"""``snugdp bounds``: private bounds for columns that have no public ones."""

from __future__ import annotations

from typing import Annotated

import typer

from snugdp.cli.errors import in_plain_words


def bounds(
    file: Annotated[str, typer.Argument(help="A Parquet, CSV or Arrow file, a folder of them, or a pattern.")],
    column: Annotated[list[str], typer.Option("--column", "-c", help="A column of numbers; give it again for more.")],
    epsilon: Annotated[str, typer.Option(help="The privacy budget for all columns together, such as 0.5.")],
    outside: Annotated[str, typer.Option(help="The share of rows that may lie beyond each bound.")] = "0.01",
    neighbours: Annotated[str, typer.Option(help='"add_remove" or "replace".')] = "add_remove",
) -> None:
    """Estimate bounds privately and print them as sections of a schema. This spends budget; the plan comes first.

    Example: snugdp bounds people.parquet --column age --column income --epsilon 0.5
    """
    from snugdp.queries.bounds import Bounds

    with in_plain_words():
        query = Bounds(columns=column, epsilon=epsilon, outside=outside, neighbours=neighbours)
        typer.echo("\n".join(f"# {line}" for line in str(query.plan()).splitlines()) + "\n")
        released = query.release(file).value
    if released is not None:
        typer.echo(released.to_toml(), nl=False)
