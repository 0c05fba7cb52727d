"""Options that several commands have, alone and in groups, and the files that they name."""

from __future__ import annotations

import functools
import glob
import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Data = Annotated[
    str, typer.Argument(help="A Parquet, CSV or Arrow file, a folder of them, or a pattern.", show_default=False)
]
SchemaFile = Annotated[Path, typer.Argument(help="The schema, a TOML file.", show_default=False)]
OptionalSchema = Annotated[
    Path | None, typer.Argument(help="The schema, a TOML file; without one, bounds are found privately.")
]
Described = Annotated[
    str, typer.Argument(help="The schema, a TOML file; or the table, whose bounds are then found.", show_default=False)
]
ModelIn = Annotated[Path, typer.Argument(help="A model file, as written by fit -o.", show_default=False)]
ModelOut = Annotated[Path | None, typer.Option("--output", "-o", help="Save the model to this JSON file.")]
Target = Annotated[str | None, typer.Option(help="The column to predict, if it is not the target of the schema.")]
Epsilon = Annotated[str, typer.Option(help="The privacy budget of this release, such as 0.5.", show_default=False)]
Delta = Annotated[str, typer.Option(help="The failure probability of this release.")]
Relation = Annotated[str, typer.Option("--neighbours", help='Which tables are neighbours: "add_remove" or "replace".')]
Rows = Annotated[int | None, typer.Option(min=1, help="A public guess of the number of rows.")]
LedgerAt = Annotated[
    str | None, typer.Option("--ledger", help="The ledger: a file, or postgresql://user@host/database#dataset.")
]
Multiline = Annotated[
    bool, typer.Option(help="For CSV files: line breaks in quotes belong to their cell; if not, every line is a row.")
]
RawText = Annotated[
    bool,
    typer.Option("--raw-text", help="Write text as it is into CSV files, also where a spreadsheet would compute it."),
]
PublicRows = Annotated[
    str | None,
    typer.Option(
        "--sample",
        help="Public rows with the same columns, such as last year's published table: the forecast is for rows like "
        "these. Never rows of the private table.",
    ),
]
Spreads = Annotated[
    list[str] | None,
    typer.Option(
        "--spread",
        help="linear, with bounds for all columns: about the standard deviation over the distance between the bounds, "
        "if it is known in public, of all columns, such as 0.15, or of one, such as income=0.05; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]


class OptionGroup:
    """A dataclass whose fields are options of every command that has a parameter of its type."""


@dataclass(frozen=True, kw_only=True)
class PersonOptions(OptionGroup):
    """Whom a release protects: single rows, or persons with all their rows."""

    person: Annotated[
        str | None,
        typer.Option(
            help="The column that says whose rows belong together, such as customer_id: then persons are protected, "
            "whatever the number of their rows. By default as the schema says."
        ),
    ] = None
    max_rows: Annotated[
        str,
        typer.Option(
            help="With --person: how many rows a person may count as, at most. private: found privately, from 1 to "
            "1024; private:4096: up to 4096."
        ),
    ] = "1"

    def persons(self, schema: Path | None = None) -> dict[str, Any]:
        """As queries are given it; ``schema``: a TOML file that may name the column."""
        from snugdp.tables.schema.schema import Schema

        declared = None if schema is None or self.person is not None else Schema.from_toml(schema).person
        return {"person": declared if self.person is None else self.person, "max_rows": max_rows_of(self.max_rows)}


def max_rows_of(text: str) -> Any:
    """``--max-rows``, as queries and estimators take it.

    >>> max_rows_of("3"), max_rows_of("private"), max_rows_of("private:50")
    (3, 'private', ('private', 50))
    """
    word, colon, largest = text.partition(":")
    try:
        if word == "private":
            return (word, int(largest)) if colon else word
        return int(text)
    except ValueError:
        pass
    raise ValueError('--max-rows must be a whole number, "private", or private:4096 with a largest cap')


def spelt_out(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups in place of the groups, which it is given made of them."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, OptionGroup)}
    parameters: list[inspect.Parameter] = []
    for name, each in inspect.signature(command).parameters.items():
        kinds, several = hints, [each]
        if name in groups:
            kinds = get_type_hints(groups[name], include_extras=True)
            several = [*inspect.signature(groups[name]).parameters.values()]
        parameters += [one.replace(annotation=kinds[one.name], kind=one.KEYWORD_ONLY) for one in several]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{option: given.pop(option) for option in inspect.signature(kind).parameters})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def can_write(*files: Path | None, read: Iterable[str | Path | None] = ()) -> None:
    """What would fail after the charge is tried before it, and what the command reads is not written over.

    ``read``: files, folders and patterns.
    """
    asked = [file for file in files if file is not None]
    for file in asked:
        _try(file)
    if len({file.resolve() for file in asked}) < len(asked):
        raise ValueError(f"{asked[0]} is given for two outputs: give each a file of its own")
    for path in (str(each) for each in read if each is not None):
        for file in asked:
            _apart(file, path)


def new_file(output: Path, force: bool) -> None:
    """An existing file is replaced only with ``--force``."""
    if output.exists() and not force:
        raise ValueError(f"{output} already exists; give --force to replace it")


def of_ledger(ledger: str | None) -> list[str]:
    """The files of a ledger; none for one on a server."""
    if ledger is None or "://" in ledger:
        return []
    return [ledger + ending for ending in ("", ".anchor", ".lock", "-wal", "-shm")]


def _try(file: Path) -> None:
    folder = file.absolute().parent
    if file.is_dir():
        raise ValueError(f"cannot write {file}: it is a folder; give the name of a file")
    if not folder.is_dir():
        raise ValueError(f"cannot write {file}: there is no such folder; make it first")
    if not os.access(folder, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        raise ValueError(f"cannot write {file}: this user may not; check the permissions")


def _apart(file: Path, read: str) -> None:
    """The output is neither a file that is read nor in a folder that is read, where it would be part of the table."""
    path, target = Path(read).expanduser(), file.resolve()
    if path.is_dir():
        if path.resolve() in target.parents and not file.name.startswith((".", "_")):
            raise ValueError(f"{file} lies in the folder {read}, which is read as a table: write to another folder")
        return
    matches = [] if path.exists() else [Path(match) for match in glob.glob(str(path), recursive=True)]
    if target in [each.resolve() for each in (path, *matches)]:
        raise ValueError(f"this command reads {file} and would overwrite it: give the output another name")
