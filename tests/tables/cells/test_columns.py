"""A row's image depends on that row alone, and no row can make a column raise: the ground every guarantee stands on."""

import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snugdp
from snugdp.tables.cells import Names, groups, numbers, truths
from snugdp.tables.cells import cell as one
from snugdp.tables.cells.columns import label_texts
from snugdp_studies.audit.side_channels.inputs import object_array as objects
from tests.effort import often, repeated, sampled
from tests.tables.cells.loaders import LOADERS, load
from tests.tables.cells.odd import HOSTILE, ODD, cells

NAMES = Names([1, 0, 0.1, 2**53 + 1, "a", "b", 0.5, "2020-01-01"])


def hostile(row: Any) -> bool:
    """Whether polars itself fails on it, or asks it something."""
    return any(row is cell for cell in HOSTILE)


UNTYPED: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "pandas": lambda rows: pd.Series(objects(rows), dtype=object),
    "polars": lambda rows: pl.Series("count", rows, dtype=pl.Object),
}
BASES: dict[str, list[Any]] = {
    "whole": [1, 0, 7, 1],
    "large": [2**53 + 1, 2**53 + 3, 1],
    "real": [0.1, 0.5, 1.0, 2.5],
    "single": [np.float32(0.1), np.float32(0.5), np.float32(3)],
    "truth": [True, False, True],
    "text": ["a", "b", "a"],
    "spelled": ["1", "0", "0.1"],
    "dates": ["2020-01-01", "2020-01-02"],
}
READERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "numbers": (numbers, one.number),
    "truths": (truths, one.truth),
    "names": (NAMES.indices, NAMES.index),
}
odd = st.lists(cells, max_size=12)


def quiet(read: Callable[[Any], Any], column: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read(column)


def refused(read: Callable[[Any], Any], column: Any) -> bool:
    try:
        quiet(read, column)
    except TypeError as problem:
        return problem.__context__ is None and "must" in str(problem)
    return False


@sampled(3)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("container", UNTYPED)
@given(rows=odd)
def test_rows_of_untyped_columns_do_not_see_each_other(reader: str, container: str, rows: list[Any]) -> None:
    read, image = READERS[reader]
    rows = [row for row in rows if container != "polars" or not hostile(row)]
    assert np.array_equal(quiet(read, UNTYPED[container](rows)), [image(row) for row in rows], equal_nan=True)


@sampled(20)
@repeated
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # loaders ask hostile cells
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("base", BASES)
def test_one_odd_cell_does_not_change_the_others(base: str, loader: str) -> None:
    """A loader may give the column another type because of it. That type is refused, or nothing else changes."""
    plain, turn = LOADERS[loader](BASES[base]), sum(map(ord, base + loader))
    for more in ODD[turn % often(24, 6, 1) :: often(24, 6, 1)]:
        if loader == "polars" and hostile(more):
            continue  # polars itself asks such a cell, and fails
        column = load(loader, [*BASES[base], more])
        if column is None or len(column) != len(plain) + 1 or getattr(column, "ndim", 1) != 1:
            continue  # this library cannot hold the cells, or makes a matrix of them
        for name, (read, _) in READERS.items():
            if refused(read, column[:0]):  # then whatever a column of this type holds
                assert refused(read, column)
            elif not refused(read, plain):
                same = np.array_equal(quiet(read, column)[:-1], quiet(read, plain), equal_nan=True)
                assert same or (base, name) == ("single", "numbers"), (base, loader, name, more)


@sampled(5)
@repeated
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("base", BASES)
def test_labels_as_text_are_those_of_their_cells(base: str, loader: str) -> None:
    def read(column: Any) -> list[Any]:
        return list(label_texts(column).to_list())

    plain, turn = LOADERS[loader](BASES[base]), sum(map(ord, base + loader))
    known = [one.text(cell) for cell in BASES[base]]
    assert read(BASES[base]) == known
    for more in ODD[turn % often(24, 6, 1) :: often(24, 6, 1)]:
        if loader == "polars" and hostile(more):
            continue
        column = load(loader, [*BASES[base], more])
        if column is None or len(column) != len(plain) + 1 or getattr(column, "ndim", 1) != 1:
            continue
        if refused(read, column[:0]):
            assert refused(read, column)
        else:
            assert quiet(read, column)[:-1] == known, (base, loader, more)


@given(rows=odd, more=cells)
def test_one_more_row_adds_one_image(rows: list[Any], more: Any) -> None:
    before, after = numbers([*rows, 7]), numbers([7, more, *rows])
    assert np.array_equal(np.sort(after[np.r_[0, 2 : len(after)]]), np.sort(before), equal_nan=True)
    difference = NAMES.counts([*rows, more]) - NAMES.counts(rows)
    assert set(difference.tolist()) <= {0, 1}
    assert difference.sum() <= 1


@given(rows=odd)
def test_groups_are_told_apart_one_by_one(rows: list[Any]) -> None:
    found, keys = groups(rows), [one.label(row) for row in rows]
    for i, key in enumerate(keys):
        assert (found[i] == -1) == (key is None)
        assert all((found[i] == found[j]) == (key == keys[j]) for j in range(i) if key is not None)
    assert groups(pd.Series([2.0, None, 1.0])).tolist() == groups([2, None, 1]).tolist() == [0, -1, 1]


def test_columns_beyond_a_million_hostile_cells_are_read() -> None:
    rows = [HOSTILE[i % len(HOSTILE)] for i in range(20_000)]
    alone = [one.number(row) for row in HOSTILE]
    assert np.array_equal(numbers(rows), [alone[i % len(HOSTILE)] for i in range(20_000)], equal_nan=True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 2**30], pa.date32()),
        pl.Series([2**61], dtype=pl.Datetime("us")),
        pl.Series([2**30], dtype=pl.Date),
        pa.array([2**62], pa.timestamp("s")),
        pa.array([b"x"]),
        np.array([(1, "a")], dtype=[("n", int), ("o", object)]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1 + 0j]),
        np.array(["1"]),
        pl.Series([[1, 2]]),
        pd.Series(pd.period_range("2020", periods=2)),
        pd.Series(pd.interval_range(0, 2)),
        pa.array([b"a", None], pa.large_binary()),
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', getattr(column, 'type', ''))}",
)
def test_types_that_are_not_numbers_are_refused_by_type_alone(column: Any) -> None:
    for read in (numbers, truths):
        with pytest.raises(TypeError, match=r"convert|give a list") as caught:
            read(column)
        assert "2020" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", ["M8[D]", "m8[D]", "float16"])
def test_arrays_in_which_numpy_changes_labels_are_refused(kind: str) -> None:
    for rows in ([], [1], [1, 2]):
        with pytest.raises(TypeError, match="give a list"):
            NAMES.indices(np.array(rows).astype(kind))


class SparkColumn:
    """As Spark's: it has every attribute, and is neither true nor false."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return SparkColumn()

    def __bool__(self) -> bool:
        raise ValueError


SparkColumn.__module__ = "pyspark.sql.classic.column"


def test_a_message_names_no_label_and_no_length() -> None:
    for column in (np.array(["alice", "bob"]), np.ma.array(["alice", "bob"], mask=[True, False])):
        with pytest.raises(TypeError, match="not text") as caught:
            numbers(column)
        assert "alice" not in str(caught.value)
        assert "5" not in str(caught.value)
    for data, words in (
        (5, "cannot read a column"),
        (pd.DataFrame({"a": [1]}), "take one column"),
        ("people.parquet", r"median\(path, column='age'\)"),
        (
            SparkColumn(),
            r"Spark table as a whole to a query that takes column=..., as in median\(table, column='age'\)",
        ),
        (np.eye(2), "one-"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            numbers(data)


def test_masked_rows_are_missing() -> None:
    assert np.isnan(numbers(np.ma.array([1, 2], mask=[True, False]))).tolist() == [True, False]
    assert NAMES.indices(np.ma.array([1, 0], mask=[False, True])).tolist() == [0, -1]


@pytest.mark.parametrize(
    "column", [pa.nulls(2), pl.Series([None, None]), pd.Series([None, None], dtype="null[pyarrow]")]
)
def test_a_column_of_nothing_is_missing(column: Any) -> None:
    assert np.isnan(numbers(column)).all()
    assert NAMES.counts(column).sum() == 0


def test_pandas_sparse_columns() -> None:
    assert numbers(pd.Series([1.0, np.nan, 3.0], dtype="Sparse[float]")).tolist()[::2] == [1.0, 3.0]
    assert NAMES.indices(pd.Series([1, 0, 0], dtype="Sparse[int]")).tolist() == [0, 1, 1]


def test_decimals_are_rounded_alike_by_every_backend() -> None:
    cents = [Decimal(i) / 100 for i in range(2000)]
    for column in (
        cents,
        pa.array(cents),
        pl.Series(cents),
        pd.Series(pa.array(cents), dtype=pd.ArrowDtype(pa.decimal128(10, 2))),
    ):
        assert numbers(column).tolist() == [float(cent) for cent in cents]


@given(st.lists(st.decimals(-(10**20), 10**20, places=4), max_size=6), st.integers(4, 18))
def test_decimals_are_the_nearest_floats_in_every_container(cells: list[Decimal], scale: int) -> None:
    rows, nearest = [*cells, None], [*map(float, cells)]
    for column in (
        rows,
        pd.Series(objects(rows), dtype=object),
        pa.array(rows, pa.decimal128(38, scale)),
        pl.Series(rows, dtype=pl.Decimal(38, scale)),
        pd.Series(pa.array(rows, pa.decimal128(38, scale)), dtype=pd.ArrowDtype(pa.decimal128(38, scale))),
    ):
        found = quiet(numbers, column).tolist()
        assert found[:-1] == nearest
        assert found[-1] != found[-1]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_large_whole_numbers_are_the_nearest_floats_in_every_container(signed: list[int], unsigned: list[int]) -> None:
    for rows, kind in ((signed, "int64"), (unsigned, "uint64")):
        nearest = [float(row) for row in rows]
        assert quiet(numbers, rows).tolist() == nearest
        assert quiet(numbers, np.array(rows, kind)).tolist() == nearest
        assert quiet(numbers, [str(row) for row in rows]).tolist() == nearest
        for column in (
            pd.Series(rows, dtype=kind.replace("i", "I").replace("u", "U")),
            pl.Series(rows, dtype=pl.Int64 if kind == "int64" else pl.UInt64),
            pa.array(rows, kind),
            pd.Series(rows, dtype=f"{kind}[pyarrow]"),
        ):
            assert quiet(numbers, column).tolist() == nearest


def test_whole_numbers_beyond_all_floats_are_infinite() -> None:
    for rows in ([10**400, 1], [-(10**400), 1], [2**53 + 1, 10**400]):
        assert quiet(numbers, rows).tolist() == [one.number(row) for row in rows]
    assert numbers([10**400, -(10**400), 2**53 + 1, 2**64 + 2**11 + 1]).tolist() == [
        np.inf, -np.inf, 2.0**53, 2.0**64 + 2**12,
    ]  # fmt: skip


def test_numbers_of_a_declared_type_are_not_copied() -> None:
    plain = np.arange(5.0)
    assert np.shares_memory(numbers(plain), plain)


def test_one_complex_cell_changes_no_other_in_a_table() -> None:
    """pandas makes all numbers of a column complex if one is: as objects they are read as before."""
    numbers_, who = [float(i % 7) for i in range(60)], [i % 20 for i in range(60)]
    for person in (None, "who"):
        answers = set()
        for dtype, cell in ((None, 1j), (object, 1j), (float, None)):
            table = pd.DataFrame({"who": [*who, 99], "v": pd.Series([*numbers_, cell], dtype=dtype)})
            noise = snugdp.Simulation(3)
            found = snugdp.histogram(table, column="v", edges=[0, 2, 8], epsilon=1, person=person, noise=noise)
            answers.add(str(found))
        assert len(answers) == 1
    ids = [pd.Series([*who, 1j]), pd.Series([*who, 1j], dtype=object)]
    tables = [pd.DataFrame({"who": column, "v": [*numbers_, 0.0]}) for column in ids]
    counts = [snugdp.count(one, column="v", epsilon=1, person="who", noise=snugdp.Simulation(3)) for one in tables]
    assert str(counts[0]) == str(counts[1])
