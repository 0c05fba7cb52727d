"""``snugdp ledger``: make a budget that lasts, look at it, check its history, take it elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import AsJson, can_write, of_ledger

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger

app = typer.Typer(
    no_args_is_help=True, help="A budget on disk or on a PostgreSQL server, charged before anything is drawn."
)
Where = Annotated[
    str, typer.Argument(help="The ledger: a file, or postgresql://user@host/database#dataset.", show_default=False)
]
Anchor = Annotated[Path | None, typer.Option(help="The anchor, if it is not next to the ledger.", show_default=False)]


@app.command()
def create(
    where: Where,
    *,
    dataset: Annotated[str, typer.Option(help="A public name for the data.", show_default=False)],
    epsilon: Annotated[str, typer.Option(help="The total epsilon that may be spent.", show_default=False)],
    delta: Annotated[str, typer.Option(help="The total delta that may be spent.")] = "0",
    neighbours: Annotated[
        str, typer.Option(help='Which tables are neighbours: "add_remove" or "replace".')
    ] = "add_remove",
    unit: Annotated[
        str, typer.Option(help="Who is protected: row, person or teacher; other words are a name for a row.")
    ] = "row",
    anchor: Anchor = None,
    keep: Annotated[bool, typer.Option(help="Store what is released, so that a retry shows it again.")] = True,
) -> None:
    """Create a ledger. An existing one is never replaced.

    Example: snugdp ledger create people.ledger --dataset people-2026 --epsilon 2 --delta 1e-6
    """
    from snugdp import Budget, Ledger
    from snugdp.ledger.store import store_at

    with in_plain_words():
        if store_at(where, dataset, None if anchor is None else str(anchor)).exists():
            raise ValueError(f"this ledger already exists; look at it with: snugdp ledger show {_shown(where)}")
        budget = Budget(epsilon, delta, neighbours)
        with Ledger.open(where, dataset=dataset, budget=budget, unit=unit, anchor=anchor, keep=keep) as ledger:
            typer.echo(ledger.show())


@app.command()
def show(where: Where, anchor: Anchor = None, as_json: AsJson = False) -> None:
    """Show the budget, what is spent, what is left, and every release.

    Example: snugdp ledger show people.ledger
    """
    with in_plain_words(), _opened(where, anchor) as ledger:
        typer.echo(ledger.export("json") if as_json else ledger.show())


@app.command()
def verify(
    where: Where,
    anchor: Anchor = None,
    exported: Annotated[
        Path | None, typer.Option("--against", help="An earlier export (JSON): its last entry must still be there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the whole history and check every hash, sum, limit and the anchor. Any doubt is a failure.

    Example: snugdp ledger verify people.ledger
    """
    with in_plain_words(), _opened(where, anchor) as ledger:
        heads = [] if exported is None else [_head(exported)]
        result = ledger.verify(heads=heads)
        typer.echo(json.dumps(result.as_dict()) if as_json else str(result))


@app.command()
def export(
    where: Where,
    anchor: Anchor = None,
    form: Annotated[str, typer.Option("--format", help="json or csv.")] = "json",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Export everything with its hashes, so that others can check it without this library.

    Example: snugdp ledger export people.ledger --format csv -o releases.csv
    """
    with in_plain_words():
        can_write(output, read=(*of_ledger(where), anchor))
    with in_plain_words(), _opened(where, anchor) as ledger:
        text = ledger.export(form)
        if output is None:
            typer.echo(text)
            return
        output.write_text(text, encoding="utf-8")
        typer.echo(f"{output}: {len(ledger.entries())} entries")


def _opened(where: str, anchor: Path | None) -> Ledger:
    from snugdp import Ledger

    return Ledger.open(where, anchor=anchor)


def _shown(where: str) -> str:
    from snugdp.ledger.address import without_password

    return without_password(where)


def _head(exported: Path) -> tuple[int, str]:
    """The last entry of an earlier export."""
    try:
        head = json.loads(exported.read_text(encoding="utf-8"))["head"]
        return int(head["sequence"]), str(head["hash"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{exported} is not an export of a ledger; make one with: snugdp ledger export") from None
