"""``snugdp predict``: a model file, a table, and a file of predictions, batch by batch in the order of the rows."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import Data, ModelIn, Multiline, RawText, can_write

if TYPE_CHECKING:
    import polars as pl

    from snugdp.tables.sources import Source


def predict(
    model: ModelIn,
    data: Data,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv or .parquet file; without it CSV is printed.")
    ] = None,
    probabilities: Annotated[bool, typer.Option(help="For a classifier: the probability of every class.")] = False,
    keep: Annotated[list[str] | None, typer.Option(help="A column to keep, such as an id; repeat for more.")] = None,
    multiline: Multiline = True,
    raw_text: RawText = False,
) -> None:
    """Predict the rows of a table with a released model.

    Columns are matched by name; the target may be missing. PCA gives coordinates along the components.
    A released model is public, but its predictions for private rows are as private as those rows.

    Example: snugdp predict model.json new.parquet -o predictions.csv
    """
    with in_plain_words():
        from snugdp.cli.reading import table
        from snugdp.estimators.files.model_file import load
        from snugdp.serial.files import result_file, without_formulas
        from snugdp.tables.sources import open_source

        if output is not None and output.suffix not in (".csv", ".parquet"):
            raise ValueError(f"{output} must end in .csv or .parquet")
        can_write(output, read=(model, data))
        released = load(model)
        ask = _question(released, probabilities)
        frames = _answers(released, ask, open_source(table(data, multiline)), tuple(keep or ()))
        safe = frames if raw_text else map(without_formulas, frames)
        if output is None:
            _write_csv(safe, sys.stdout)
        elif output.suffix == ".csv":
            with result_file(output) as fresh, open(fresh, "w", encoding="utf-8", newline="") as file:
                _write_csv(safe, file)
        else:
            with result_file(output) as fresh:
                _write_parquet(frames, Path(fresh))
        if output is not None:
            typer.echo(f"Wrote {output}", err=True)


def _question(model: Any, probabilities: bool) -> str:
    """The method to call; a refused model has none."""
    from snugdp.estimators.base import refused

    if not model.released_:
        looked = bool(getattr(model, "_looks", False))
        refused(type(model).__name__, getattr(model, "_without_test", "auto"), looked=looked)
    if not probabilities:
        return "predict" if hasattr(model, "predict") else "transform"
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"a {type(model).__name__} has no probabilities: leave out --probabilities")
    return "predict_proba"


def _answers(model: Any, ask: str, source: Source, keep: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """A frame for every batch, in the order of the rows; at least one, so that a file has its head."""
    import polars as pl

    from snugdp.cli.reading import Reader

    reader = Reader(source, model, keep)
    names = _names(model, ask, keep)
    for rows, kept in reader:
        values = getattr(model, ask)(rows)
        columns = values.T if values.ndim == 2 else [values]
        predicted = [pl.Series(name, column, strict=False) for name, column in zip(names, columns, strict=True)]
        yield pl.DataFrame([*kept.get_columns(), *predicted])


def _names(model: Any, ask: str, keep: tuple[str, ...]) -> list[str]:
    if ask == "predict":
        names = ["prediction"]
    elif ask == "predict_proba":
        names = [f"probability={label}" for label in model.classes_]
    else:
        names = [str(name) for name in model.get_feature_names_out()]
    if both := sorted({*names} & {*keep}):
        raise ValueError(f'the kept column "{both[0]}" has the name of a prediction: rename it')
    return names


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
