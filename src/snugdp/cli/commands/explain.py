"""``snugdp explain``: what every column adds to a prediction, of one row as a table, or of all rows as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import Data, ModelIn, Multiline, RawText
from snugdp.cli.row_files import Kept, RowsOut, check_output, write
from snugdp.cli.terminal import harmless

if TYPE_CHECKING:
    import polars as pl

    from snugdp.cli.reading import Reader

_LONGEST = 40  # characters of a cell


def explain(
    model: ModelIn,
    data: Data,
    *,
    row: Annotated[
        int | None, typer.Option(min=1, help="Print a table for this row, the first being 1, instead of all rows.")
    ] = None,
    output: RowsOut = None,
    label: Annotated[
        str | None, typer.Option(help="Of more than two classes: the one whose score is explained.")
    ] = None,
    keep: Kept = None,
    multiline: Multiline = True,
    raw_text: RawText = False,
) -> None:
    """Say what every column adds to a prediction: of one row in a table, or of all rows in a file.

    In units of the target; of labels in log-odds. The contributions and the base, the answer for a usual row, add up
    to the prediction. A released model is public, but what it says of private rows is as private as those rows.

    Example: snugdp explain model.json new.parquet --row 1
    """
    with in_plain_words():
        from snugdp.cli.reading import Reader, table
        from snugdp.estimators.files.model_file import load
        from snugdp.tables.sources import open_source

        if row is not None and output is not None:
            raise ValueError("--row prints a table for one row, and --output writes all rows: leave out one of them")
        check_output(output, (model, data))
        released: Any = load(model)
        if not hasattr(released, "explain"):
            raise ValueError(f"a {type(released).__name__} has no explanations: its answers are no sums over columns")
        chosen = _label(released, label)
        reader = Reader(open_source(table(data, multiline)), released, tuple(keep or ()))
        if row is None:
            write(_frames(released, reader, chosen), output, raw_text=raw_text)
        else:
            _show(released, _row(reader, row), row, chosen)


def _label(model: Any, word: str | None) -> Any:
    """The class that is written so."""
    if word is None:
        return None
    return {str(label): label for label in getattr(model, "classes_", ())}.get(word, word)


def _frames(model: Any, reader: Reader, label: Any) -> Iterator[pl.DataFrame]:
    """A frame for every batch, in the order of the rows; at least one, so that a file has its head."""
    import polars as pl

    for rows, kept in reader:
        found = model.explain(rows, label=label).frame
        if both := sorted({*found.columns} & {*kept.columns}):
            raise ValueError(f'the kept column "{both[0]}" has the name of a contribution: rename it')
        yield pl.concat([kept, found], how="horizontal")


def _row(reader: Reader, number: int) -> pl.DataFrame:
    """One row, the first being 1, as it is read."""
    before = 0
    for rows, _ in reader:
        if number <= before + len(rows):
            return rows[number - 1 - before : number - before]
        before += len(rows)
    raise ValueError(f"the table has no row {number}")


def _show(model: Any, row: pl.DataFrame, number: int, label: Any) -> None:
    """The contributions, the largest first, beside the cells that they come from."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    found = model.explain(row, label=label)
    by_name = set(found.columns) <= set(row.columns)  # a model of arrays takes columns in their order
    cells = row.row(0, named=True) if by_name else dict(zip(found.columns, row.row(0), strict=True))
    table = Table("column", "cell", Column("adds", justify="right"), title=f"Row {number}: {_answer(model, row)}")
    table.add_row("base", "", f"{found.base:.6g}")
    for name, value in found.largest().items():
        table.add_row(Text(harmless(name)), Text(_cell(cells[name])), f"{value:+.6g}")
    table.add_section()
    table.add_row(_unit(model, label), "", f"{found.sums[0]:.6g}")
    Console().print(table)


def _answer(model: Any, row: pl.DataFrame) -> str:
    said = model.predict(row)[0]
    return f"prediction {said:.6g}" if not hasattr(model, "classes_") else f"prediction {harmless(str(said))}"


def _unit(model: Any, label: Any) -> str:
    """What the sum is."""
    if hasattr(model, "classes_"):
        return harmless(f"log-odds of {model.classes_[1]}" if label is None else f"score of {label}")
    return "sum"


def _cell(cell: Any) -> str:
    text = "missing" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else harmless(str(cell))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
