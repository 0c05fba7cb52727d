"""``snugdp bounds``: private bounds for columns that have no public ones."""

from __future__ import annotations

from typing import Annotated

import typer

from snugdp.cli import models
from snugdp.cli.releases import Data, Till, Told, releasing


@releasing
def bounds(
    data: Data,
    *,
    till: Till,
    column: Annotated[list[str], typer.Option("--column", "-c", help="A column of numbers; repeat for more.")],
    epsilon: Annotated[str, typer.Option(help="The privacy budget for all columns together, such as 0.5.")],
    outside: Annotated[str, typer.Option(help="The share of rows that may lie beyond each bound.")] = "0.01",
    neighbours: models.Relation = "add_remove",
) -> None:
    """Estimate bounds privately and print them as sections of a schema. This spends budget; the plan comes first.

    Example: snugdp bounds people.parquet --column age --column income --epsilon 0.5 --ledger people.ledger
    """
    from snugdp.cli import reading
    from snugdp.queries.bounds import Bounds

    query = Bounds(columns=column, epsilon=epsilon, outside=outside, neighbours=neighbours)
    reading.of_numbers(data, column)
    plan = query.plan()
    account = till.agreed(plan, aside=True)
    outcome = query.release(data, ledger=account)
    if outcome.value is None:
        raise AssertionError("bounds are never refused")
    found = outcome.value.columns
    shown = {"bounds": {name: {"lower": one.lower, "upper": one.upper} for name, one in found.items()}}
    public = {"columns": ", ".join(column), "outside": outside}
    till.tell(outcome, plan, Told(None, shown, title=f"Bounds of {', '.join(column)}", public=public, aside=True))
    if not till.as_json:
        typer.echo(outcome.value.to_toml(), nl=False)
