"""Votes in every form and container give the same histograms; errors come by public facts and quote nothing."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.pate import blocks
from snugdp.pate import votes as vote_forms
from snugdp.pate.votes import Panel, read
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.tables.cells.cell import label as label_of
from tests.effort import often, repeated, sampled

rng = np.random.default_rng(4)
COUNTS = np.array([[5, 2, 0], [0, 0, 7], [3, 3, 1], [1, 6, 0]])
LABELS = rng.integers(0, 4, (9, 6))  # one row per query; 3 is no class


def counted(table: Any, classes: list[Any]) -> list[list[int]]:
    """The histograms by hand, one cell at a time."""
    names = [label_of(name) for name in classes]
    return [[sum(label_of(vote) == name for vote in row) for name in names] for row in table]


def inside(found: tuple[Panel, Secret[Any]]) -> list[list[int]]:
    histograms = unwrap(found[1])
    assert histograms.dtype == np.int64
    rows: list[list[int]] = histograms.tolist()
    return rows


def saved(frame: pl.DataFrame, folder: Path, ending: str = "parquet") -> Path:
    path = folder / f"votes.{ending}"
    (frame.write_parquet if ending == "parquet" else frame.write_ipc)(path)
    return path


def named(table: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {f"c{place}": column for place, column in enumerate(table.T)}


def containers(table: np.ndarray[Any, Any], folder: Path) -> dict[str, Any]:
    """The same cells in everything that can hold them."""
    polars = pl.DataFrame(named(table))
    return {
        "array": table,
        "int8": table.astype(np.int8),
        "uint8": table.astype(np.uint8),
        "uint64": table.astype(np.uint64),
        "float32": table.astype(np.float32),
        "float64": table.astype(np.float64),
        "by column": np.asfortranarray(table),
        "strided": np.repeat(np.repeat(table, 2, axis=0), 3, axis=1)[::2, ::3],
        "backwards": table[::-1, ::-1].copy()[::-1, ::-1],
        "objects": table.astype(object),
        "masked": np.ma.MaskedArray(table, False),
        "lists": table.tolist(),
        "tuples": tuple(tuple(row) for row in table.tolist()),
        "list of arrays": list(table),
        "mixed rows": [row if i % 2 else row.tolist() for i, row in enumerate(table.astype(np.int16))],
        "list of series": [pd.Series(row) for row in table],
        "numbers of many kinds": [
            [kind(cell) for kind, cell in zip(cycle([int, float, Decimal, Fraction, np.int8, np.float32]), row)]
            for row in table.tolist()
        ],
        "pandas": pd.DataFrame(named(table)),
        "pandas nullable": pd.DataFrame(named(table)).astype("Int64"),
        "pandas arrow": pd.DataFrame(named(table)).astype("int64[pyarrow]"),
        "pandas objects": pd.DataFrame(named(table)).astype(object),
        "pandas of two types": pd.DataFrame(named(table)).astype({"c0": "float64"}),
        "polars": polars,
        "polars of two types": polars.with_columns(pl.col("c1").cast(pl.Float32)),
        "polars decimals": polars.with_columns(pl.all().cast(pl.Decimal(10, 2))),
        "narwhals": nw.from_native(polars),
        "lazy": polars.lazy(),
        "narwhals lazy": nw.from_native(polars.lazy()),
        "arrow": pa.table(named(table)),
        "arrow chunks": pa.concat_tables([pa.table(named(table[:2])), pa.table(named(table[2:]))]),
        "parquet": saved(polars, folder),
        "parquet as text": str(saved(polars, folder)),
        "arrow file": saved(polars, folder, "arrow"),
    }


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return [containers(table, tmp_path_factory.mktemp("votes")) for table in (COUNTS, LABELS, LABELS.T.copy())]


@sampled(2)
@pytest.mark.parametrize("small", [False, True], ids=["one block", "many blocks"])
def test_every_container_reads_alike(
    small: bool, everything: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        monkeypatch.setattr(blocks, "CELLS", 7)
        monkeypatch.setattr(blocks, "_GROUP", 2)
        monkeypatch.setattr(vote_forms, "_CELLS", 5)
    for kind, histograms in everything[0].items():
        queries, teachers = (table[kind] for table in everything[1:])
        for n_teachers in (None, 9):
            found = read(histograms, n_teachers=n_teachers, classes=["a", "b", "c"])
            assert found[0] == Panel(n_teachers or 7, 4, ("a", "b", "c")), kind
            assert inside(found) == COUNTS.tolist(), kind
        for found in (
            read(queries, form="queries", classes=[0, 1, 2]),
            read(teachers, form="teachers", classes=[0, 1, 2], n_teachers=6),
        ):
            assert found[0] == Panel(6, 9, (0, 1, 2)), kind
            assert inside(found) == counted(LABELS.tolist(), [0, 1, 2]), kind


def text_containers(rows: list[list[Any]], folder: Path) -> dict[str, Any]:
    columns = {f"c{place}": list(column) for place, column in enumerate(zip(*rows, strict=True))}
    polars = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return {
        "lists": rows,
        "objects": np.array(rows, dtype=object),
        "pandas": pd.DataFrame(columns),
        "pandas objects": pd.DataFrame(columns, dtype=object),
        "pandas categories": pd.DataFrame(columns).astype("category"),
        "pandas of two types": pd.DataFrame(columns).astype({"c0": "category"}),
        "polars": polars,
        "polars categories": polars.with_columns(pl.all().cast(pl.Categorical)),
        "arrow": pa.table(columns),
        "arrow dictionary": pa.table({name: pa.array(cells).dictionary_encode() for name, cells in columns.items()}),
        "lazy": polars.lazy(),
        "parquet": saved(polars, folder),
    }


HOLES = np.array([[0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool)
TEXTS: list[list[Any]] = [["cat", "dog", None], ["ox", "dog", "dog"], ["", "Cat", "cat "], ["cat", "cat", "cat"]]


def test_text_in_every_container(tmp_path: Path) -> None:
    for kind, votes in text_containers(TEXTS, tmp_path).items():
        panel, histograms = read(votes, form="queries", classes=["cat", "dog"])
        assert panel == Panel(3, 4, ("cat", "dog")), kind
        assert unwrap(histograms).tolist() == [[1, 1], [0, 2], [0, 0], [3, 0]], kind


def test_numpy_text() -> None:
    rows = [["cat", "dog"], ["ox", "dog"], ["cats", "d"]]
    for votes, classes in ((np.array(rows), ["dog", "cat"]), (np.array(rows, dtype="S"), [b"dog", b"cat"])):
        assert inside(read(votes, form="queries", classes=classes)) == [[1, 1], [1, 0], [0, 0]]
        assert inside(read(votes, form="queries", classes=["dog\0", 7])) == [[0, 0]] * 3


@pytest.mark.parametrize(
    "votes",
    [
        [[1, None, 2], [None, None, math.nan], [2, 2, 9]],
        np.array([[1, math.nan, 2], [math.nan] * 3, [2, 2, 9]]),
        np.ma.MaskedArray([[1, 1, 2], [1, 1, 1], [2, 2, 9]], HOLES),
        np.ma.MaskedArray([[1, 1, 2], [1, 1, 1], [2, 2, 9]], HOLES).astype(np.int8),
        pd.DataFrame([[1, None, 2], [None, None, None], [2, 2, 9]]),
        pd.DataFrame([[1, None, 2], [None, None, None], [2, 2, 9]], dtype="Int64"),
        pd.DataFrame([[1, None, 2], [None, None, None], [2, 2, 9]], dtype="Float64"),
        pd.DataFrame([[1, None, 2], [None, None, None], [2, 2, 9]], dtype="int64[pyarrow]"),
        pl.DataFrame({"a": [1, None, 2], "b": [None, None, 2], "c": [2, None, 9]}),
        pl.DataFrame({"a": [1, None, 2], "b": [None, None, 2], "c": [2, None, 9]}, schema_overrides={"b": pl.Int8}),
        pl.DataFrame({"a": [1.0, None, 2], "b": [None, math.nan, 2], "c": [2, None, 9]}, strict=False),
        pl.DataFrame({"a": [1, None, 2], "b": [None, None, 2], "c": [2, None, 9]}).lazy(),
        pa.table({"a": [1, None, 2], "b": [None, None, 2], "c": [2, None, 9]}),
    ],
    ids=lambda votes: type(votes).__module__,
)
def test_missing_votes_and_other_labels_abstain(votes: Any) -> None:
    assert inside(read(votes, form="queries", classes=[1, 2])) == [[1, 1], [0, 0], [0, 2]]
    for n_teachers in (None, 100):
        with pytest.raises(ValueError, match="the rows must be histograms"):
            read(votes, n_teachers=n_teachers)


def test_truth_values() -> None:
    rows = np.array([[True, False, True], [False, False, False]])
    tables: list[Any] = [rows, rows.tolist(), pl.DataFrame(named(rows)), pd.DataFrame(rows), pa.table(named(rows))]
    for votes in tables:
        assert inside(read(votes, form="queries", classes=[True, False])) == [[2, 1], [0, 3]]
        assert inside(read(votes, form="queries", classes=[1, 2])) == [[2, 0], [0, 0]]
        assert inside(read(votes, classes=["x", "y", "z"], n_teachers=2)) == [[1, 0, 1], [0, 0, 0]]
    holes = pl.DataFrame({"a": [True, None], "b": [None, False]})
    assert inside(read(holes, form="queries", classes=[True, False])) == [[1, 0], [0, 1]]


class Awkward:
    """A cell that refuses everything."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("somebody's secret 4711")

    def __hash__(self) -> int:
        return hash(1)

    def __float__(self) -> float:
        raise RuntimeError("somebody's secret 4711")


def test_no_cell_of_a_list_changes_another() -> None:
    strange: list[Any] = [
        None, math.nan, "4", b"4", [], [1, 2], {}, 1j, np.timedelta64(1, "s"), Awkward(), 1.5, 10**400, -1, object(),
        pd.NA, Decimal("sNaN"),
    ]  # fmt: skip
    for cell in strange:
        for odd in (cell, [cell, 1]):  # a cell, and a row
            rows = [[1, 2, 3], odd, [1, 1.0, "1"]]
            assert inside(read(rows, form="queries", classes=[1, 2, 3], n_teachers=3))[::2] == [[1, 1, 1], [3, 0, 0]]
        found = inside(read([[1, 2, cell], [1, 2, 3], [1, 1.0, True]], form="queries", classes=[1, 2, 3]))
        assert found == [[1, 1, 0], [1, 1, 1], [3, 0, 0]]
        for n_teachers in (None, 5):
            with pytest.raises(ValueError, match="the rows must be histograms") as caught:
                read([[1, 2, cell], [1, 2, 3]], n_teachers=n_teachers)
            assert "4711" not in str(caught.value)
            assert caught.value.__context__ is None
    big = [[2**53 + 2, 2**53 + 1], [2**53, 5]]  # a missing vote beside it would have made 2**53 of 2**53 + 1
    for votes in (big, np.array(big), np.array(big, dtype=float)):
        assert inside(read(votes, form="queries", classes=[2**53 + 2, 2**53])) == [[1, 1], [0, 1]]


numeric = st.sampled_from(["int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64", "bool"])
label = st.one_of(
    st.integers(-300, 300),
    st.floats(-4, 4, width=16),
    st.sampled_from([2**62, -(2**63), 2**64 - 1, 0.1, 1e30, "1", math.inf]),
)


@repeated
@settings(max_examples=often(25, 80, 150), deadline=None, derandomize=True)
@given(numeric, st.lists(label, min_size=2, max_size=9, unique_by=label_of), st.data())
def test_typed_cells_match_as_one_by_one(dtype: str, classes: list[Any], data: st.DataObject) -> None:
    kind = np.dtype(dtype)
    row = data.draw(
        st.lists(st.sampled_from([*(float(entry) for entry in classes), 0.0, 1.0]), min_size=1, max_size=12)
    )
    with np.errstate(all="ignore"):
        table = np.array([row]).astype(kind)
    assert inside(read(table, form="queries", classes=classes)) == counted(table.tolist(), classes)
    assert inside(read(table.tolist(), form="queries", classes=classes)) == counted(table.tolist(), classes)
    noise = np.frombuffer(data.draw(st.binary(min_size=24, max_size=24)), dtype=kind if dtype != "bool" else np.int8)
    assert inside(read(noise[None, :], form="queries", classes=classes)) == counted(noise[None, :].tolist(), classes)


@pytest.mark.parametrize(
    ("rows", "n_teachers"),
    [
        ([[3, 2], [4, 2]], None),
        ([[0, 0], [0, 0]], None),
        ([[3, 2], [6, -1]], None),
        ([[2.5, 2.5], [3, 2]], None),
        ([[3, 2], [3, math.inf]], None),
        ([[3, 2], [4, 2]], 5),
        ([[3, 2], [-1, 3]], 5),
        ([[3, 2], [1.5, 2]], 5),
        ([[3, 2], [2**63, 2**63]], 5),
        ([[3, 2], [2**62, 2**62]], None),
        ([[3, 2], [2**64, -(2**64) + 5]], None),
    ],
)
def test_what_is_no_histogram_is_refused_without_a_quote(rows: list[list[Any]], n_teachers: int | None) -> None:
    tables: list[Any] = [rows, pd.DataFrame(rows, dtype=object), np.array(rows, dtype=object), np.array(rows)]
    if max(max(row) for row in rows) < 2**63:
        tables += [pl.DataFrame(rows, orient="row", strict=False), pa.table(pd.DataFrame(rows))]
    heard = set()
    for votes in tables:
        with pytest.raises(ValueError, match="the rows must be histograms") as caught:
            read(votes, n_teachers=n_teachers)
        heard.add(str(caught.value))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert len(heard) == 1  # the same words whatever is wrong


def test_rows_may_add_up_to_less_when_the_number_of_teachers_is_given() -> None:
    rows = [[0, 0], [5, 0], [2, 2]]
    assert inside(read(rows, n_teachers=5)) == rows
    assert read(rows, n_teachers=np.int64(5))[0] == Panel(5, 3, (0, 1))  # type: ignore[arg-type]


def test_names_of_columns_are_the_classes() -> None:
    assert read(pl.DataFrame({"cat": [1, 2], "dog": [2, 1]}))[0] == Panel(3, 2, ("cat", "dog"))
    assert read(pa.table({"cat": [1, 2], "dog": [2, 1]}))[0].classes == ("cat", "dog")
    assert read(pd.DataFrame(COUNTS))[0].classes == (0, 1, 2)
    assert read(pd.DataFrame(COUNTS, columns=[7, "x", 2.5]))[0].classes == (7, "x", 2.5)
    assert read(pd.DataFrame(COUNTS), classes=np.array([4, 5, 6]))[0].classes == (4, 5, 6)
    assert read(COUNTS)[0].classes == (0, 1, 2)
    assert read(COUNTS, classes=pd.Index(["x", "y", "z"]))[0].classes == ("x", "y", "z")
    twice = pd.DataFrame(LABELS, columns=["t"] * 6)
    assert inside(read(twice, form="queries", classes=[0, 1])) == counted(LABELS.tolist(), [0, 1])
    with pytest.raises(ValueError, match="same label"):
        read(pd.DataFrame(COUNTS, columns=["a", "b", "a"]))


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: read(COUNTS, form="votes"), ValueError, "form must be"),  # type: ignore[arg-type]
    (lambda: read(LABELS, form="queries"), ValueError, "needs classes"),
    (lambda: read(LABELS, form="teachers"), ValueError, "needs classes"),
    (lambda: read(LABELS, form="queries", classes=[0, 1], n_teachers=9), ValueError, "as many teachers as columns, 6"),
    (lambda: read(LABELS, form="teachers", classes=[0, 1], n_teachers=6), ValueError, "as many teachers as rows, 9"),
    (lambda: read(COUNTS, classes=["a", "b"]), ValueError, "3 columns, but 2 classes"),
    (lambda: read(COUNTS, classes=["a", "a", "b"]), ValueError, "same label"),
    (lambda: read(LABELS, form="queries", classes=[1, True]), ValueError, "same label"),
    (lambda: read(LABELS, form="queries", classes=[1]), ValueError, "at least two classes"),
    (lambda: read(COUNTS[:, :1]), ValueError, "at least two classes"),
    (lambda: read(LABELS, form="queries", classes=[1, None]), ValueError, "stand for a missing label"),
    (lambda: read(LABELS, form="queries", classes=[1, math.nan]), ValueError, "stand for a missing label"),
    (lambda: read(LABELS, form="queries", classes=[1, [2]]), TypeError, "not containers"),  # type: ignore[list-item]
    (lambda: read(LABELS, form="queries", classes="ab"), TypeError, "list of labels"),
    (lambda: read(LABELS, form="queries", classes=7), TypeError, "list of labels"),  # type: ignore[arg-type]
    (lambda: read(COUNTS, n_teachers=0), ValueError, "n_teachers must be at least 1"),
    (lambda: read(COUNTS, n_teachers=2**41), ValueError, "n_teachers must be at least 1"),
    (lambda: read(COUNTS, n_teachers=True), TypeError, "whole number"),
    (lambda: read(COUNTS, n_teachers=7.0), TypeError, "whole number"),  # type: ignore[arg-type]
    (lambda: read(COUNTS[0]), ValueError, "two dimensions, not of 1"),
    (lambda: read(COUNTS[None]), ValueError, "two dimensions, not of 3"),
    (lambda: read(pd.Series([1, 2])), ValueError, "two dimensions, not of 1"),
    (lambda: read([1, 2, 3]), ValueError, "at least two classes"),
    (lambda: read([[1, 2], [3]]), ValueError, "must be histograms"),
    (lambda: read({"a": [1]}), TypeError, "cannot read votes from dict"),
    (lambda: read(None), TypeError, "cannot read votes from NoneType"),
    (lambda: read(COUNTS.astype(complex)), TypeError, "must hold numbers"),
    (lambda: read(COUNTS.astype(str)), TypeError, "must hold numbers"),
    (lambda: read(COUNTS.astype("M8[s]"), form="queries", classes=[1, 2]), TypeError, "must not be an array of dates"),
    (lambda: read(pl.DataFrame({"a": [[1]]}), form="queries", classes=[1, 2]), TypeError, "classes must be"),
    (lambda: read(pl.DataFrame({"a": ["x"], "b": ["y"]})), ValueError, "must be histograms"),
    (lambda: read([], classes=["a", "b"]), ValueError, "no query"),
    (lambda: read([]), ValueError, "at least two classes"),
    (lambda: read(COUNTS[:0]), ValueError, "no query"),
    (lambda: read(pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Int8, "b": pl.Int8})), ValueError, "no query"),
    (lambda: read(LABELS[:0], form="queries", classes=[0, 1]), ValueError, "no query"),
    (lambda: read(LABELS[:, :0], form="queries", classes=[0, 1]), ValueError, "no teacher"),
    (lambda: read(LABELS[:0], form="teachers", classes=[0, 1]), ValueError, "no teacher"),
    (lambda: read("/nowhere/votes.parquet"), ValueError, "no file"),
]


@pytest.mark.parametrize(
    ("call", "error", "words"), MISTAKES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_public_mistakes_are_named(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    text = tmp_path / "votes.csv"
    text.write_text("a,b\n1,2\n")
    assert inside(read(text)) == [[1, 2]]
    whole = saved(pl.DataFrame({"a": range(5000), "b": range(5000)}), tmp_path)
    raw = bytearray(whole.read_bytes())
    raw[50:2000] = b"\x07" * 1950
    whole.write_bytes(bytes(raw))
    with pytest.raises(ValueError, match=r"could not be read|damaged|is not a whole file") as caught:
        read(whole, n_teachers=10**6)
    assert caught.value.__context__ is None


def test_a_query_that_fails_quotes_nothing() -> None:
    frame = pl.DataFrame({"a": ["4711", "x4711"], "b": ["1", "2"]}).lazy()
    with pytest.raises(ValueError, match="could not be read to its end") as caught:
        read(frame.select(pl.all().cast(pl.Int64)), n_teachers=10**6)
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None


def test_rows_of_a_file_keep_their_order(tmp_path: Path) -> None:
    rows = 20_000
    frame = pl.DataFrame({"a": range(rows), "b": range(rows, 0, -1)})
    path = tmp_path / "votes.parquet"
    frame.write_parquet(path, row_group_size=77)
    assert unwrap(read(path)[1])[:, 0].tolist() == list(range(rows))
    assert unwrap(read(frame.lazy())[1])[:, 0].tolist() == list(range(rows))
    labels = pl.DataFrame({f"t{i}": (np.arange(rows) + i) % 100 for i in range(70)})
    labels.write_parquet(path, row_group_size=5000)
    found = unwrap(read(path, form="queries", classes=range(100))[1])
    wanted = np.zeros((rows, 100), dtype=np.int64)
    for i in range(70):
        wanted[np.arange(rows), (np.arange(rows) + i) % 100] += 1
    assert (found == wanted).all()


def test_the_secret_is_shut() -> None:
    _, histograms = read(COUNTS)
    assert isinstance(histograms, Secret)
    assert repr(histograms) == "<secret>"
    assert "5" not in repr(read(COUNTS, n_teachers=9)[0])


def test_the_array_is_not_that_of_the_caller() -> None:
    votes = COUNTS.copy()
    _, histograms = read(votes)
    votes[0, 0] = 99
    assert unwrap(histograms)[0, 0] == 5


CODE = """
import resource, sys
from snugdp.pate.votes import read
import polars
limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
panel, _ = read(sys.argv[1], form="queries", classes=range(3))
assert panel.teachers == 600 and panel.queries == 60000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - limit) / 1024)
"""


@pytest.mark.slow
def test_a_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """A single row group of 288 MB."""
    column = np.tile(np.arange(4), 15_000)
    path = saved(pl.DataFrame({f"t{i}": column for i in range(600)}), tmp_path)
    run = subprocess.run([sys.executable, "-c", CODE, path], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 100
