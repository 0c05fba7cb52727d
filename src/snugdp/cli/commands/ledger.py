"""``snugdp ledger``: make a budget that lasts, look at it, check its history, take it elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import AsJson, RawText, can_write, of_ledger

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger

app = typer.Typer(
    no_args_is_help=True, help="A budget on disk or on a PostgreSQL server, charged before anything is drawn."
)
Where = Annotated[
    str, typer.Argument(help="The ledger: a file, or postgresql://user@host/database#dataset.", show_default=False)
]
Anchor = Annotated[Path | None, typer.Option(help="The anchor, if it is not next to the ledger.", show_default=False)]
AllowNetwork = Annotated[
    bool,
    typer.Option(
        "--allow-network-file-system",
        help="Accept NFS, SMB, FUSE and the like, whose locks may hold on one machine only; this is recorded.",
    ),
]


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
    unit: Annotated[str, typer.Option(help="Who is protected: row, person (with all rows) or teacher.")] = "row",
    anchor: Anchor = None,
    keep: Annotated[bool, typer.Option(help="Store what is released, so that a retry shows it again.")] = True,
    composition: Annotated[
        str,
        typer.Option(
            help='How releases add up: "addition" of what they announce, "tight" for many Gaussian ones, or "both".'
        ),
    ] = "addition",
    users: Annotated[bool, typer.Option(help="Record the name of the account that makes a charge.")] = True,
    allow_network: AllowNetwork = False,
) -> None:
    """Create a ledger. An existing one is never replaced.

    Example: snugdp ledger create people.ledger --dataset people-2026 --epsilon 2 --delta 1e-6
    """
    from snugdp import Budget, Ledger
    from snugdp.ledger.stores.store import store_at

    with in_plain_words():
        if store_at(where, dataset, None if anchor is None else str(anchor)).exists():
            raise ValueError(f"this ledger already exists; look at it with: snugdp ledger show {_shown(where)}")
        budget = Budget(epsilon, delta, neighbours)
        made = Ledger.open(
            where, dataset=dataset, budget=budget, unit=unit, anchor=anchor, keep=keep, composition=composition,
            users=users, network_file_system=allow_network,
        )  # fmt: skip
        with made as ledger:
            typer.echo(ledger.show())


@app.command()
def show(
    where: Where,
    anchor: Anchor = None,
    last: Annotated[int, typer.Option(min=1, help="How many entries to show.")] = 20,
    verbose: Annotated[bool, typer.Option(help="Show keys, whole costs, and what is left of each kind too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the budget, what is spent, what is left, and the last releases, one line each.

    Example: snugdp ledger show people.ledger --last 50
    """
    with in_plain_words(), _opened(where, anchor) as ledger:
        told = ledger.overview(last)
        typer.echo(json.dumps(told.as_dict(), allow_nan=False) if as_json else told.table(verbose))


@app.command()
def page(
    where: Where,
    output: Annotated[Path, typer.Option("--output", "-o", help="Write to this HTML file.", show_default=False)],
    anchor: Anchor = None,
) -> None:
    """Write one self-contained page: what is left over time, all releases, and what they promise together.

    Example: snugdp ledger page people.ledger -o ledger.html
    """
    with in_plain_words():
        can_write(output, read=(*of_ledger(where), anchor))
        from snugdp.report.ledger import page as rendered
        from snugdp.serial.files import write_text

        with _opened(where, anchor) as ledger:
            write_text(output, rendered(ledger))
    typer.echo(f"Wrote {output}")


@app.command("plan")
def planned(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Planned releases: plans as JSON, or lists of epsilon, delta and neighbours as TOML or JSON."
        ),
    ],
    *,
    epsilon: Annotated[str | None, typer.Option(help="The total epsilon.", show_default=False)] = None,
    delta: Annotated[str | None, typer.Option(help="The total delta.", show_default=False)] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Start from what this ledger has left.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what each way to add up would leave after a list of planned releases. Nothing is charged.

    Example: snugdp ledger plan releases.toml --epsilon 2 --delta 1e-6
    """
    from snugdp.cli.planned_releases import compared, read_releases

    with in_plain_words():
        releases = [release for file in files for release in read_releases(file)]
        told = compared(releases, epsilon, delta, ledger)
        typer.echo(json.dumps([one.as_dict() for one in told]) if as_json else "\n".join(map(str, told)))


@app.command()
def partition(
    where: Where,
    column: Annotated[str, typer.Argument(help="The column that says to which part a row belongs.")],
    values: Annotated[
        str | None, typer.Option(help="The parts: values of the column, known without the data, separated by commas.")
    ] = None,
    by_hash: Annotated[
        int | None, typer.Option("--hash", min=2, help="Instead of values: the number of parts, by a hash of the cell.")
    ] = None,
    anchor: Anchor = None,
) -> None:
    """Declare disjoint parts of the table, for good: of releases on different parts only the largest counts.

    Example: snugdp ledger partition people.ledger region --values north,south
    """
    with in_plain_words():
        if (values is None) == (by_hash is None):
            raise ValueError("give the parts as --values north,south, or their number as --hash 4")
        parts = by_hash if values is None else [value.strip() for value in values.split(",")]
        with _opened(where, anchor) as ledger:
            ledger.partition(column, parts if parts is not None else ())
            named = " ".join(f"{column}={part}" for part in ledger.part_names(column))
            typer.echo(f"Parts, as --part takes them: {named}")


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
def adopt(
    where: Where,
    *,
    reason: Annotated[str, typer.Option(help="Why, for the record.", show_default=False)],
    lost_epsilon: Annotated[
        str | None, typer.Option(help="The epsilon spent on releases that this copy has lost; it is charged again.")
    ] = None,
    lost_delta: Annotated[str, typer.Option(help="The delta spent on them.")] = "0",
    anchor: Anchor = None,
    allow_network: AllowNetwork = False,
) -> None:
    """Make a moved or restored copy the ledger from now on. Who, when, why and what was lost is recorded in it.

    Example: snugdp ledger adopt people.ledger --reason "restored from the backup of 3 May" --lost-epsilon 0.5
    """
    from snugdp import Ledger

    with (
        in_plain_words(),
        Ledger.adopt(
            where, reason=reason, lost_epsilon=lost_epsilon, lost_delta=lost_delta, anchor=anchor,
            network_file_system=allow_network,
        ) as ledger,
    ):  # fmt: skip
        adoption = ledger.adoptions[-1]
        typer.echo(f"{adoption.place} is the ledger from now on: record {adoption.seq}, by {adoption.by}")


@app.command()
def void(
    where: Where,
    *,
    reason: Annotated[str, typer.Option(help="Why, for the record.", show_default=False)],
    lost_epsilon: Annotated[
        str | None,
        typer.Option(help="The epsilon that they may have spent, if a newer version may have written them."),
    ] = None,
    lost_delta: Annotated[str, typer.Option(help="The delta that they may have spent.")] = "0",
    anchor: Anchor = None,
) -> None:
    """Void invalid records at the end of a ledger, which stop it. Who, when, why and which is recorded in it.

    Example: snugdp ledger void people.ledger --reason "record 123 was written by hand"
    """
    from snugdp import Ledger

    with (
        in_plain_words(),
        Ledger.void(where, reason=reason, lost_epsilon=lost_epsilon, lost_delta=lost_delta, anchor=anchor) as ledger,
    ):
        typer.echo(f"Void: {ledger.voids[-1].words}")


@app.command()
def export(
    where: Where,
    anchor: Anchor = None,
    form: Annotated[
        Literal["json", "csv"] | None,
        typer.Option("--format", help="By default what the file's name says, or json.", show_default=False),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    raw_text: RawText = False,
) -> None:
    """Export everything with its hashes, so that others can check it without this library.

    Example: snugdp ledger export people.ledger -o releases.csv
    """
    from snugdp.serial.files import write_text

    with in_plain_words():
        form = _format(form, output)
        can_write(output, read=(*of_ledger(where), anchor))
    with in_plain_words(), _opened(where, anchor) as ledger:
        text = ledger.export(form, raw_text=raw_text)
        if output is None:
            typer.echo(text)
            return
        write_text(output, text)
        typer.echo(f"{output}: {len(ledger.entries())} entries")


def _format(asked: Literal["json", "csv"] | None, output: Path | None) -> Literal["json", "csv"]:
    """What was asked for, or what the name of the file says; both must agree."""
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    named = next((form for form in ("json", "csv") if form == ending), None)
    if asked is not None and named is not None and asked != named:
        raise ValueError(f"--format {asked} does not fit {output}: give the file another ending, or leave --format out")
    return asked or named or "json"


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
