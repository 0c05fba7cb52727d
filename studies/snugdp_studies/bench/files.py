"""One exact pass over the same rows in different files: what a format costs."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from functools import partial
from pathlib import Path

from snugdp.tables.engines import measure
from snugdp.tables.passes.moments import GramPass
from snugdp.tables.sources import Csv
from snugdp_studies.bench.contest.speed import Timing, timed
from snugdp_studies.bench.gram import schema, table


def run(repeats: int = 3, rows: int = 500_000, d: int = 20) -> list[Timing]:
    """Parquet, and CSV as it is, with every cell in quotes, gzipped, and line by line with quotes inside cells."""
    work = GramPass(schema(d))
    with tempfile.TemporaryDirectory() as folder:
        jobs = {
            name: partial(measure, path, work, progress=False) for name, path in _files(Path(folder), rows, d).items()
        }
        return timed(f"{rows:,} x {d} from a file", jobs, repeats)


def _files(folder: Path, rows: int, d: int) -> dict[str, Path | Csv]:
    import polars as pl

    values = table(rows, d, 0)
    names = {
        "Parquet": "rows.parquet",
        "Arrow": "rows.arrow",
        "CSV": "rows.csv",
        "CSV, every cell in quotes": "quoted.csv",
        "CSV, gzipped": "rows.csv.gz",
        "CSV, quotes inside cells": "irregular.csv",
    }
    paths = {name: folder / file for name, file in names.items()}
    values.write_parquet(paths["Parquet"])
    values.write_ipc(paths["Arrow"])
    values.write_csv(paths["CSV"])
    values.write_csv(paths["CSV, every cell in quotes"], quote_style="always")
    with paths["CSV"].open("rb") as plain, gzip.open(paths["CSV, gzipped"], "wb", compresslevel=1) as packed:
        shutil.copyfileobj(plain, packed)
    inches = values.with_columns(note=pl.lit('5" pipe'))
    inches.write_csv(paths["CSV, quotes inside cells"], quote_style="never")
    return {**paths, "CSV, quotes inside cells": Csv(paths["CSV, quotes inside cells"], multiline=False)}
