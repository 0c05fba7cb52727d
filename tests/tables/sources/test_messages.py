"""What is wrong with a file is said so that it can be put right."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snugdp import LinearRegression, describe, median
from snugdp.tables.sources import Csv, TableError, open_source
from snugdp.tables.sources.files import FileSource

WIDE = pa.table({"a": [1.0], "huge": pa.array([Decimal(1)], pa.decimal256(60, 2))})
TWICE = pa.table([[1.0], [2.0]], names=["x", "x"])


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_decimals_that_are_too_wide_are_named(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        pq.write_table(WIDE, path)
    else:
        with pa.ipc.new_file(path, WIDE.schema) as file:
            file.write_table(WIDE)
    with pytest.raises(TableError, match=r'decimal256.*"huge"\. Write them again as float64'):
        open_source(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TableError, match="not a whole file of its kind"):
        open_source(path)


def test_types_that_are_not_known_are_named_in_memory_too() -> None:
    with pytest.raises(TypeError, match=r'"huge" must hold numbers, not Unknown \(decimal256, a map or the like\)'):
        median(WIDE, column="huge", bounds=(0, 100), epsilon=1)
    with pytest.raises(TypeError, match=r"numbers, not Unknown \(decimal256, a map or the like\)"):
        median(WIDE["huge"], bounds=(0, 100), epsilon=1)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_two_columns_of_one_name_in_a_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        pq.write_table(TWICE, path)
    else:
        with pa.ipc.new_file(path, TWICE.schema) as file:
            file.write_table(TWICE)
    with pytest.raises(TableError, match=r'two columns that are called "x"'):
        open_source(path)


def test_another_separator_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age|income\n31|45\n")
    with pytest.raises(TableError, match=r'Csv\(path, separator="\|"\)'):
        median(tmp_path / "rows.csv", column="age", bounds=(0, 100), epsilon=1)
    assert set(FileSource.of_text(Csv(tmp_path / "rows.csv", separator="|")).types) == {"age", "income"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_another_encoding_is_named(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes("age,income\r\n31,45\r\n".encode(encoding))
    with pytest.raises(TableError, match="UTF-16: write it again with encoding='utf-8'"):
        open_source(tmp_path / "rows.csv")


@pytest.mark.parametrize(
    "call",
    [
        open_source,
        lambda table: LinearRegression(x_norm=1, y_bound=1).fit(table, [1.0]),
        lambda table: describe(table, epsilon=1),
    ],
)
def test_two_columns_of_one_name(call: Any) -> None:
    with pytest.raises(TableError, match='two columns of the table are called "x"; rename one'):
        call(TWICE)
