"""A frame for every batch of rows, in their order, as a CSV or Parquet file or on the terminal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.options import can_write

if TYPE_CHECKING:
    import polars as pl

RowsOut = Annotated[
    Path | None, typer.Option("--output", "-o", help="A .csv or .parquet file; without it CSV is printed.")
]
Kept = Annotated[list[str] | None, typer.Option(help="A column to keep, such as an id; repeat for more.")]


def check_output(output: Path | None, read: Iterable[str | Path]) -> None:
    """Whether the file can be written, before anything is read."""
    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{output} must end in .csv or .parquet")
    can_write(output, read=read)


def write(frames: Iterator[pl.DataFrame], output: Path | None, *, raw_text: bool) -> None:
    """Whole or not at all. ``raw_text``: in CSV files also text that a spreadsheet would compute."""
    from snugdp.serial.files import result_file, without_formulas

    safe = frames if raw_text else map(without_formulas, frames)
    if output is None:
        _write_csv(safe, sys.stdout)
        return
    if output.suffix == ".csv":
        with result_file(output) as fresh, open(fresh, "w", encoding="utf-8", newline="") as file:
            _write_csv(safe, file)
    else:
        with result_file(output) as fresh:
            _write_parquet(frames, Path(fresh))
    typer.echo(f"Wrote {output}", err=True)


def _write_csv(frames: Iterator[pl.DataFrame], file: Any) -> None:
    for index, frame in enumerate(frames):
        file.write(frame.write_csv(include_header=index == 0))


def _write_parquet(frames: Iterator[pl.DataFrame], output: Path) -> None:
    """In parts beside the file, then joined: only one batch is ever in memory."""
    import polars as pl

    with tempfile.TemporaryDirectory(dir=output.absolute().parent) as folder:
        parts = []
        for index, frame in enumerate(frames):
            parts.append(Path(folder) / f"{index:09}.parquet")
            frame.write_parquet(parts[-1])
        pl.scan_parquet(parts, glob=False).sink_parquet(output)
