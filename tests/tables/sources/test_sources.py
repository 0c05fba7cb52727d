"""Every container gives the same rows; everything public is refused up front, and no message quotes a cell."""

import gzip
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp.secrecy.secret import PrivateComputationError, unwrap
from snugdp.secrecy.silence import attempt
from snugdp.tables.engines import fold_one, measure
from snugdp.tables.schema.scaling import part_of_norm
from snugdp.tables.schema.schema import Boolean, Category, Number, Schema
from snugdp.tables.sources import Csv, DuckDB, TableError, open_source
from snugdp.tables.sources.base import guarded
from tests.effort import sampled
from tests.tables.tallies import Meddling, Tally, Words

TABLE = pl.DataFrame(
    {
        "age": [31.5, None, float("inf"), -1e300, float("nan"), 64.25] * 700,
        "visits": list(range(4200)),
        "city": ["Rome", None, "Oslo", 'a "b", c', "x\ny", "Köln"] * 700,
    }
)
WORK = Tally(("age", "visits"))
WORDS = Words(("city", "visits"))
EXPECTED, EXPECTED_WORDS = unwrap(measure(TABLE, WORK)), unwrap(measure(TABLE, WORDS))


def parquet(folder: Path) -> object:
    TABLE.write_parquet(folder / "t.parquet", row_group_size=500)
    return folder / "t.parquet"


def arrow(folder: Path) -> object:
    TABLE.write_ipc(folder / "t.arrow", compression="zstd")
    return str(folder / "t.arrow")


def feather(folder: Path) -> object:
    TABLE.write_ipc(folder / "t.feather", compression="uncompressed")
    return folder / "t.feather"


def several(folder: Path) -> object:
    for i in range(7):
        TABLE[i * 600 : (i + 1) * 600].write_parquet(folder / f"part-{i}.parquet")
    return [folder / f"part-{i}.parquet" for i in (3, 1, 0, 2, 6, 5, 4)]


def a_folder(folder: Path) -> object:
    several(folder)
    (folder / "deep").mkdir()
    shutil.move(folder / "part-6.parquet", folder / "deep" / "part-6.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    return folder


def a_pattern(folder: Path) -> object:
    several(folder)
    return f"{folder}/part-*.parquet"


def odd_name(folder: Path) -> object:
    TABLE.write_parquet(folder / "t[1]*.parquet")
    return folder / "t[1]*.parquet"


def database(folder: Path) -> object:
    duckdb = pytest.importorskip("duckdb")
    parquet(folder)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(f"create table t as select * from '{folder}/t.parquet'")
    return DuckDB(folder / "t.duckdb", "select city, age, visits from t")


CONTAINERS: list[Callable[[Path], object]] = [
    lambda _: TABLE, lambda _: TABLE.lazy(), lambda _: TABLE.to_arrow(), lambda _: TABLE.to_pandas(),
    lambda _: TABLE.to_pandas(use_pyarrow_extension_array=True), lambda _: nw.from_native(TABLE),
    lambda _: nw.from_native(TABLE.lazy()), lambda _: open_source(TABLE),
    parquet, arrow, feather, several, a_folder, a_pattern, odd_name, database,
]  # fmt: skip


@sampled(9)
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_rows(container: Callable[[Path], object], tmp_path: Path) -> None:
    data = container(tmp_path)
    assert unwrap(measure(data, WORK)) == EXPECTED
    assert unwrap(measure(data, Tally(()))) == [4200]  # no column wanted, and still every row is counted
    if not isinstance(data, pd.DataFrame):  # which writes a missing text in another way
        assert unwrap(measure(data, WORDS)) == EXPECTED_WORDS
    assert set(open_source(data).types) == {"age", "visits", "city"}


@sampled(3)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("quotes", ["necessary", "always"])
def test_csv_gives_the_same_rows(ending: str, quotes: Any, tmp_path: Path) -> None:
    as_text = Words(("city",))
    for table, multiline in ((TABLE, True), (TABLE.with_columns(pl.col("city").str.replace("\n", " ")), False)):
        text = table.write_csv(quote_style=quotes).encode()
        path = tmp_path / f"t{ending}"
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
        given = path if multiline else Csv(path, multiline=False)
        assert unwrap(measure(given, WORK)) == EXPECTED
        assert unwrap(measure(given, as_text)) == unwrap(measure(table, as_text))
        assert set(open_source(given).types.values()) == {nw.Unknown()}


def test_a_schema_says_what_the_cells_of_a_csv_file_are(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "a": Number(0, 1),
        "b": Boolean(),
        "c": Category(["x"]),
        "d": Category([1, 2]),
        "e": Category(["true"]),
    }
    schema = Schema(columns, intercept=False)
    (tmp_path / "t.csv").write_text("e,d,c,b,a\ntrue,1, x,Yes, 0.5 \nTrue,2.0,x,0,half\n,,,maybe,1e999\n")
    (batch,) = next(iter(open_source(tmp_path / "t.csv").partitions())).batches(tuple(columns))
    found = schema.vectors(batch.frame)[0] / part_of_norm(5)
    assert found.tolist() == [[0, 1, 0, 1, 0, 1], [0, -1, 1, 0, 1, 1], [1, 0, 0, 0, 0, 0]]


def test_names_of_a_csv_file_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;2\n3;4\n")
    given = Csv(tmp_path / "a.csv", names=["x", "y"], separator=";")
    assert unwrap(measure(given, Tally(("y", "x")))) == [2, 6 << 30, 0, 4 << 30, 0]
    with pytest.raises(TableError, match="same name"):
        open_source(Csv(tmp_path / "a.csv", names=["x", "x"]))
    for names in (list[str](), "xy"):
        with pytest.raises(ValueError, match="name of every column"):
            Csv(tmp_path / "a.csv", names=names)
    (tmp_path / "b.parquet").touch()
    with pytest.raises(TableError, match=r"b\.parquet is not a CSV file"):
        open_source(Csv(tmp_path))
    with pytest.raises(ValueError, match="separator"):
        Csv(tmp_path / "a.csv", separator="::")


def test_a_column_of_objects_is_one_whatever_its_rows_look_like() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", "y"], dtype=object), "b": pd.Series([1, None], dtype=object)})
    assert list(open_source(frame).types.values()) == [nw.Object(), nw.Object()]


def test_tables_that_are_none() -> None:
    for data in ({"a": [1]}, [[1, 2]], [], np.ones((2, 2)), None, 3, pl.Series([1])):
        with pytest.raises(TypeError, match="cannot read a table from"):
            open_source(data)
    with pytest.raises(TableError, match="names of the columns must be text"):
        open_source(pd.DataFrame(np.ones((2, 2))))
    doubled = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(ValueError, match="a"):
        open_source(doubled)


BAD_PATHS: list[tuple[Callable[[Path], object], str]] = [
    (lambda f: f / "none.parquet", "there is no file"),
    (lambda f: f / "none-*.parquet", "no file matches"),
    (lambda f: f, "holds no file"),
    (lambda f: "s3://bucket/t.parquet", "not a local path"),
    (lambda f: written(f / "t.xlsx", b"123"), "unknown ending"),
    (lambda f: written(f / "t.parquet", b""), "not a whole file"),
    (lambda f: written(f / "t.arrow", b"ARROW1 SECRET"), "not a whole file"),
    (lambda f: written(f / "t.csv", b""), "is empty"),
    (lambda f: written(f / "t.csv", b"1.5,SECRET\n2,3\n"), "names should be"),
    (lambda f: written(f / "t.csv", b"a,a\n2,3\n"), "same name"),
    (lambda f: written(f / "t.csv.gz", b"SECRET"), "not a whole file"),
    (lambda f: written(f / "t.csv.gz", b""), "not a whole file"),
    (lambda f: Csv(written(f / "t.csv.gz", b""), names=["a"]), "not a whole file"),
    (lambda f: written(f / "notes.txt", b"SECRET").parent, "notes.txt in the folder has an unknown ending"),
    (lambda f: [written(f / "a.csv", b"a\n1\n"), linked(f / "b.csv", f / "a.csv")], "listed twice"),
    (lambda f: [written(f / "a.csv", b"a,b\n1,2\n"), written(f / "b.csv", b"SECRET,b\n")], "names other columns"),
    (lambda f: [written(f / "a.csv", b"a,b\n1,2\n"), f / "a.csv"], "listed twice"),
    (lambda f: [written(f / "a.csv", b"a,b\n1,2\n"), written(f / "a.parquet", b"")], "different formats"),
    (lambda f: DuckDB(f / "none.duckdb", "select 1"), "no database file|need DuckDB"),
]  # fmt: skip


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def linked(path: Path, to: Path) -> Path:
    path.hardlink_to(to)
    return path


@pytest.mark.parametrize(("given", "message"), BAD_PATHS)
def test_bad_paths_are_refused_when_opened(given: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message) as caught:
        open_source(given(tmp_path))
    clean(caught.value)


def clean(error: BaseException) -> None:
    """No native exception behind it, and nothing quoted."""
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert "SECRET" not in str(error)


def test_a_truncated_parquet_file_is_refused_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    TABLE.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TableError, match=r"t\.parquet is not a whole file") as caught:
        open_source(path)
    clean(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (TABLE.drop("age"), 'column "age" is Float64 in .*, but absent in .*part-6'),
        (TABLE.cast({"visits": pl.String}), 'column "visits" is Int64 in .*, but String in'),
        (TABLE.with_columns(more=1), 'column "more" is absent in .*, but Int32'),
        (TABLE.with_columns(visits=pl.lit(None)), 'column "visits" is Int64 in .*, but Unknown in .*same columns'),
        (TABLE.with_columns(visits=pl.lit("SECRET", pl.Enum(["SECRET"]))), "is Int64 in .*, but Enum in"),
    ],
)
def test_a_changed_schema_is_refused_when_opened(changed: pl.DataFrame, message: str, tmp_path: Path) -> None:
    several(tmp_path)
    changed.write_parquet(tmp_path / "part-6.parquet")
    with pytest.raises(TableError, match=message) as caught:
        open_source(tmp_path)
    clean(caught.value)


def test_a_column_without_a_type_in_the_first_file_is_told_as_such(tmp_path: Path) -> None:
    for name, column in (("a", [None]), ("b", [1])):
        pl.DataFrame({"x": column}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(TableError, match=r'column "x" is Unknown in .*, but Int64 in'):
        open_source(tmp_path)


def test_labels_of_a_type_do_not_decide(tmp_path: Path) -> None:
    for name in ("x", "y"):
        pl.DataFrame({"a": [name, None]}, schema={"a": pl.Enum([name])}).write_parquet(tmp_path / f"{name}.parquet")
    assert unwrap(measure(tmp_path, Words(("a",)))) == {"('x',)": 1, "('y',)": 1, "(None,)": 2}


class Panic(BaseException):
    """As native libraries raise it: no ``Exception``."""


@pytest.mark.parametrize("when", ["open", "read"])
def test_a_panic_of_a_native_library_is_an_error_like_others(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path)
    source = open_source(path)

    def panic(*_: object, **__: object) -> Any:
        raise Panic("SECRET")

    monkeypatch.setattr(pl, "scan_parquet", panic)
    with pytest.raises(TableError, match=r"not a whole file|damaged") as caught:
        open_source(path) if when == "open" else measure(source, WORK)
    clean(caught.value)
    with pytest.raises(PrivateComputationError) as hidden:
        fold_one(Panicking(("age",)), [0, 0, 0], nw.from_native(TABLE))
    clean(hidden.value)


class Panicking(Tally):
    def fold(self, state: list[int], frame: nw.DataFrame[Any]) -> list[int]:
        raise Panic("SECRET")


def test_an_interrupt_is_not_swallowed() -> None:
    def interrupted() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(guarded(iter(interrupted, None), lambda: "failed"))


def test_wrong_columns_are_refused_before_a_row_is_read(tmp_path: Path) -> None:
    source = open_source(parquet(tmp_path))
    with pytest.raises(TableError, match=r'has no column "weight"; it has "age", "visits", "city"'):
        source.check(Tally(("age", "weight")))
    (tmp_path / "t.csv").write_text("SECRET,x\n1,2\n")
    with pytest.raises(TableError, match="must name the columns") as caught:
        measure(tmp_path / "t.csv", Tally(("age",)))
    clean(caught.value)
    with pytest.raises(TypeError, match='"city" is of type String'):
        source.check(Tally(("city",)))


def test_a_folder_that_cannot_be_entered_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several(tmp_path)
    (tmp_path / "closed").mkdir()
    listing = os.scandir

    def guard(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "denied", str(path))
        return listing(path)

    monkeypatch.setattr(os, "scandir", guard)
    with pytest.raises(TableError, match=r"the folder .*closed cannot be entered"):
        open_source(tmp_path)


def test_a_link_to_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    several(tmp_path / "here")
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TableError, match="is a link"):
        open_source(tmp_path / "here")


def test_a_bad_query_is_refused_when_opened(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="query cannot be planned") as caught:
        open_source(TABLE.lazy().select("SECRET"))
    clean(caught.value)
    given = database(tmp_path)
    assert isinstance(given, DuckDB)
    with pytest.raises(TableError, match="cannot be planned") as caught:
        open_source(DuckDB(given.path, "select SECRET from t"))
    clean(caught.value)


@sampled(3)
@pytest.mark.parametrize(
    "query",
    [
        "select 1 as a; select 2 as a", "copy t to 'out.csv'", "pragma show_tables", "set threads = 1", "",
        "pivot t on city using count(*)", "insert into t select * from t", "explain select * from t",
    ],
)  # fmt: skip
def test_only_one_statement_that_selects(query: str, tmp_path: Path) -> None:
    given = database(tmp_path)
    assert isinstance(given, DuckDB)
    with pytest.raises(TableError, match="one statement that selects"):
        open_source(DuckDB(given.path, query))
    assert set(open_source(DuckDB(given.path, "with x as (select age from t) select * from x;")).types) == {"age"}


def test_a_query_reaches_no_other_file(tmp_path: Path) -> None:
    given = database(tmp_path)
    assert isinstance(given, DuckDB)
    for query in (f"select * from read_parquet('{tmp_path}/t.parquet')", f"select * from '{tmp_path}/t.parquet'"):
        with pytest.raises(TableError, match="tables of this file alone"):
            open_source(DuckDB(given.path, query))


@pytest.mark.parametrize("log", [True, False])
def test_a_database_that_changes_is_an_error(log: bool, tmp_path: Path) -> None:
    given = database(tmp_path)
    assert isinstance(given, DuckDB)
    source = open_source(given)
    assert unwrap(measure(source, WORK)) == EXPECTED
    changed = Path(f"{given.path}.wal") if log else Path(given.path)
    with changed.open("ab") as file:
        file.write(b" ")
    with pytest.raises(TableError, match="was changed after it was opened"):
        measure(source, WORK)


def test_a_database_that_vanishes_during_the_pass(tmp_path: Path) -> None:
    given = database(tmp_path)
    assert isinstance(given, DuckDB)
    with pytest.raises(TableError, match="vanished after it was opened") as caught:
        measure(given, Meddling(("age",), Path(given.path)))
    clean(caught.value)


def test_duckdb_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "t.duckdb").touch()
    with pytest.raises(TableError, match=r"pip install 'snugdp\[duckdb\]'"):
        open_source(DuckDB(tmp_path / "t.duckdb", "select 1"))
