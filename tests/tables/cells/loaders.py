"""Containers as users and loaders make them: each may change the type of a whole column because of one cell."""

import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from snugdp_studies.audit.side_channels.inputs import object_array as objects


def spelled(cell: Any) -> str:
    """A cell as a writer of CSV spells it."""
    if cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return cell.decode() if isinstance(cell, bytes) else str(cell)


def _csv(cells: list[Any]) -> io.StringIO:
    frame = pl.DataFrame({"v": [spelled(cell) for cell in cells], "w": ["1"] * len(cells)})
    return io.StringIO(frame.write_csv())


LOADERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "objects": objects,
    "masked": lambda cells: np.ma.MaskedArray(np.array(cells), mask=False),
    "pandas": pd.Series,
    "pandas objects": lambda cells: pd.Series(objects(cells), dtype=object),
    "pandas convert_dtypes": lambda cells: pd.Series(cells).convert_dtypes(),
    "pandas pyarrow": lambda cells: pd.Series(cells).convert_dtypes(dtype_backend="pyarrow"),
    "pandas category": lambda cells: pd.Series(cells).astype("category"),
    "pandas read_csv": lambda cells: pd.read_csv(_csv(cells))["v"],
    "pandas read_csv pyarrow": lambda cells: pd.read_csv(_csv(cells), dtype_backend="pyarrow")["v"],
    "polars": lambda cells: pl.Series("v", cells, strict=False),
    "polars text": lambda cells: pl.Series("v", [None if cell is None else spelled(cell) for cell in cells]),
    "polars read_csv": lambda cells: pl.read_csv(_csv(cells))["v"],
    "polars category": lambda cells: pl.Series("v", [spelled(cell) or None for cell in cells], dtype=pl.Categorical),
    "pyarrow": pa.array,
    "pyarrow text": lambda cells: pa.array([None if cell is None else spelled(cell) for cell in cells]),
    "pyarrow chunks": lambda cells: pa.chunked_array([pa.array(cells)]),
}


def load(loader: str, cells: list[Any], loaders: Mapping[str, Callable[[list[Any]], Any]] = LOADERS) -> Any | None:
    """The column as a loader makes it; nothing if it cannot hold these cells."""
    try:
        return loaders[loader](list(cells))
    except BaseException:  # a panic of a native library is no Exception
        return None
