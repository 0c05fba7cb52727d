"""``snugdp predict``: a model file, a table, and a file of predictions, batch by batch in the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snugdp.cli.errors import in_plain_words
from snugdp.cli.options import Data, ModelIn, Multiline, RawText
from snugdp.cli.row_files import Kept, RowsOut, check_output, write

if TYPE_CHECKING:
    import polars as pl

    from snugdp.tables.sources import Source


def predict(
    model: ModelIn,
    data: Data,
    *,
    output: RowsOut = None,
    probabilities: Annotated[bool, typer.Option(help="For a classifier: the probability of every class.")] = False,
    keep: Kept = None,
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
        from snugdp.tables.sources import open_source

        check_output(output, (model, data))
        released = load(model)
        ask = _question(released, probabilities)
        frames = _answers(released, ask, open_source(table(data, multiline)), tuple(keep or ()))
        write(frames, output, raw_text=raw_text)


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
