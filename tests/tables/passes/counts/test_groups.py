"""Groups of rows: every cell has its own image, in every container, and parts of a table merge exactly."""

from __future__ import annotations

import datetime
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.tables.cells import cell as one
from snugdp.tables.engines import Local, gather
from snugdp.tables.grid import Grid
from snugdp.tables.passes.counts.groups import UNIT, GroupPass, GroupSums, ValueColumn
from snugdp.tables.passes.counts.keys import OTHER, CellColumn, KeyColumn, KeyKind, key_column, label
from snugdp.tables.passes.together import Together
from snugdp.tables.sources import TableError, open_source

VALUES = (ValueColumn("x", Fraction(0), Fraction(10), squares=True),)
ODD = [
    "a",
    "b",
    "a",
    None,
    "7",
    "07",
    "",
    "nan",
    "2020-01-02",
    " a",
    "true",
    "I",
    "inf",
    "1e3",
    "0.5",
    "\x00a",
    "Ünal",
    "\u00a07",
]


def groups(table: Any, *by: str, **named: Any) -> tuple[GroupPass, GroupSums]:
    source = open_source(table)
    several = named.get("most", 1) > 1
    work = GroupPass(tuple(key_column(source, name, several=several) for name in by), **named)
    return work, gather(source, work)


def counted(work: GroupPass, state: GroupSums) -> dict[Any, int]:
    keys, rows = work.counts(state)
    decoded = [tuple(c.decoded(k) for c, k in zip(work.keys, key, strict=True)) for key in keys]
    return {key[0] if len(key) == 1 else key: int(n) for key, n in zip(decoded, rows, strict=True)}


def image(cell: Any) -> Any:
    """The key of a cell in a container whose types are inferred, by the rules for labels."""
    found = one.label(cell)
    if isinstance(found, float):
        return int(found) if found.is_integer() and abs(found) < 2**63 else None
    return one.text(cell) if isinstance(found, tuple) else found


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "pyarrow"])
def test_text_in_memory_is_read_by_its_label(make: Any) -> None:
    expected = Counter(key for key in map(image, ODD) if key is not None)
    assert counted(*groups(make({"k": ODD}), "k")) == expected


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x", 2, None, 2.0, 0.5, True, b"x", [3], [1, 2], object(), datetime.date(2020, 1, 2)], dtype=object),
        pd.Series([1.0, 2.0, None, 0.5, -0.0, 1e300, np.inf]),
        pl.Series([1, 2, None, 2**53 + 1]),
        pl.Series([True, False, None]),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pd.Series(["a", None, "b", "a"], dtype="category"),
        pl.Series([b"a", b"1", None]),
        pl.Series([2**64 - 1, 5], dtype=pl.UInt64),
    ],
    ids=["objects", "floats", "ints", "booleans", "categorical", "category", "bytes", "unsigned"],
)
def test_cells_of_any_type_have_the_same_image(column: Any) -> None:
    table = column.to_frame("k")
    cells = nw.from_native(column, series_only=True).to_list()
    assert counted(*groups(table, "k")) == Counter(key for key in map(image, cells) if key is not None)


def test_labels_have_encodings_of_their_own() -> None:
    column = KeyColumn("k", KeyKind.LABEL)
    cells = ["1", 2, "a", "\x00a", "\x001", "\x00\x00a", "-5"]
    encoded = [label(cell) for cell in cells]
    assert len(set(encoded)) == len(cells)
    assert [column.decoded(code) for code in encoded] == [1, 2, "a", "\x00a", "\x001", "\x00\x00a", -5]


@given(st.lists(st.text() | st.integers(-9, 9).map(str) | st.sampled_from(ODD), max_size=30))
def test_the_fast_path_reads_text_as_each_cell_by_itself(cells: list[str | None]) -> None:
    sound = [cell for cell in cells if cell is None or cell.isprintable() or cell.isascii()]
    expected = Counter(key for key in map(image, sound) if key is not None)
    assert counted(*groups(pl.DataFrame({"k": pl.Series(sound, dtype=pl.String)}), "k")) == expected


def test_declared_text_stays_as_it_is(tmp_path: Path) -> None:
    frame = pl.DataFrame({"k": ["07", "7", "7", "", None, "nan", "2020-01-02"], "n": [1, 1, 2, 2**53 + 1, 2**53, 3, 3]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    for name in ("t.parquet", "t.csv"):
        assert counted(*groups(tmp_path / name, "k")) == {"07": 1, "7": 2, "nan": 1, "2020-01-02": 1}
    assert counted(*groups(tmp_path / "t.parquet", "n")) == {1: 2, 2: 1, 2**53 + 1: 1, 2**53: 1, 3: 2}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pl.Series([0.5]), "round it to whole numbers"),
        (pl.Series([datetime.date(2020, 1, 2)]), "the year or the month"),
        (pl.Series([datetime.datetime(2020, 1, 2)]), "the year or the month"),
        (pl.Series([{"a": 1}]), "convert it to text"),
        (pd.Series([0.5], dtype="float32"), "round it to whole numbers"),
        (pl.Series([[0.5]]), "round it to whole numbers"),
    ],
    ids=str,
)
def test_floats_and_dates_are_refused_by_their_declared_type(column: Any, words: str) -> None:
    empty = column.head(0).to_frame("k") if isinstance(column, pl.Series) else column[:0].to_frame("k")
    for table in (column.to_frame("k") if isinstance(column, pd.Series) else pl.DataFrame({"k": column}), empty):
        if "k" not in table.columns:
            continue
        with pytest.raises(TypeError, match=words):
            groups(table, "k")


def test_sums_are_exact_and_clipped() -> None:
    table = pl.DataFrame({"k": ["a"] * 6 + ["b"], "x": [0.0, 10.0, 5.0, 99.0, None, float("-inf"), float("nan")]})
    work, state = groups(table, "k", values=VALUES)
    found = work.at(state, [("a",), ("zz",), ("b",)])
    assert {name: column.tolist() for name, column in found.items()} == {
        "rows": [6, 0, 1],
        "n0": [5, 0, 0],
        "s0": [-UNIT + UNIT + 0 + UNIT - UNIT, 0, 0],
        "q0": [4 * UNIT, 0, 0],
    }


def test_booleans_are_values_too() -> None:
    table = pd.DataFrame({"k": [1, 1, 1, 1], "x": ["yes", False, 1, "?"]})
    work, state = groups(table, "k", values=(ValueColumn("x", Fraction(0), Fraction(1), boolean=True),))
    found = work.at(state, [(label(1),)])
    assert (found["n0"].tolist(), found["s0"].tolist()) == ([3], [UNIT])


rng = np.random.default_rng(5)
TABLE = pl.DataFrame(
    {
        "k": [f"city {i}" for i in rng.integers(0, 300, 6000)],
        "j": rng.integers(0, 3, 6000),
        "x": rng.normal(5, 3, 6000),
    }
)


def test_the_state_does_not_depend_on_order_cuts_threads_or_travel() -> None:
    source = open_source(TABLE)
    work = GroupPass(tuple(key_column(source, name) for name in ("k", "j")), VALUES)

    def all_of(state: GroupSums) -> Any:
        keys = list(work.counts(state)[0])
        return keys, {name: column.tolist() for name, column in work.at(state, keys).items()}

    whole = all_of(gather(source, work))
    assert all_of(Local(threads=3).run(open_source(TABLE.sample(fraction=1, shuffle=True, seed=1)), work)) == whole
    total = work.empty()
    for start in range(0, 6000, 700):
        part = work.fold(work.empty(), nw.from_native(TABLE[start : start + 700], eager_only=True))
        total = work.merge(total, work.unpack(work.pack(part)))
    total = work.merge(total, work.unpack(work.pack(work.empty())))
    assert all_of(total) == whole
    keys, rows = work.counts(total)
    expected = Counter(zip(TABLE["k"].to_list(), TABLE["j"].to_list(), strict=True))
    decoded = [tuple(c.decoded(k) for c, k in zip(work.keys, key, strict=True)) for key in keys]
    assert dict(zip(decoded, rows.tolist(), strict=True)) == expected
    assert list(keys) == sorted(keys)


def test_one_row_more_changes_one_group() -> None:
    work, before = groups(TABLE, "k", values=VALUES)
    after = work.fold(
        gather(open_source(TABLE), work),
        nw.from_native(pl.DataFrame({"k": ["city 7"], "x": [1e99]}), eager_only=True),
    )
    keys = list(work.counts(before)[0])
    one_, two = work.at(before, keys), work.at(after, keys)
    moved = {name: (two[name] - one_[name])[[key == ("city 7",) for key in keys]].tolist() for name in work.sums}
    assert moved == {"rows": [1], "n0": [1], "s0": [UNIT], "q0": [UNIT]}
    assert all(np.abs(two[name] - one_[name]).sum() == moved[name][0] for name in work.sums)


def test_listed_keys_are_places_in_the_list() -> None:
    source = open_source(pl.DataFrame({"k": ["a", "b", "zz", None, "a"]}))
    for other in (False, True):
        column = key_column(source, "k", ["b", "a", "c"], other=other)
        work = GroupPass((column,))
        found = work.at(gather(source, work), [(place,) for place in range(4)])["rows"].tolist()
        assert found == [1, 2, 0, 2 if other else 0]
        assert [column.decoded(place) for place in range(4)] == ["b", "a", "c", OTHER]
    with pytest.raises(ValueError, match="same label"):
        key_column(source, "k", [1, "1"])


def test_missing_keys_are_dropped_or_a_key() -> None:
    table = pl.DataFrame({"k": ["a", None, "", "a"]})
    assert counted(*groups(table, "k")) == {"a": 2}
    assert counted(*groups(table, "k", missing=True)) == {"a": 2, None: 2}


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "pyarrow"])
def test_a_row_counts_for_its_first_keys(make: Any) -> None:
    lists = [["b", "a", "b"], ["c"], [], None, ["d", "c", "a", "a"], ["d", None]]
    table = make({"k": lists, "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    assert counted(*groups(table, "k", most=2)) == {"a": 2, "b": 1, "c": 2, "d": 1}
    assert counted(*groups(table, "k", most=9)) == {"a": 2, "b": 1, "c": 2, "d": 2}
    work, state = groups(table, "k", values=VALUES, most=2)
    assert work.at(state, [("a",)])["n0"].tolist() == [2]


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "pyarrow"])
def test_keys_in_lists_are_encoded_once(make: Any) -> None:
    # twice would turn whole numbers into text, and the places of listed keys into other places, or all into one
    table = make({"k": [[2, 1], [2], [3, 1, 2], [], None]})
    assert counted(*groups(table, "k", most=3, missing=True)) == {1: 2, 2: 3, 3: 1, None: 2}
    source = open_source(table)
    for listed, other, wanted in [
        ((2, 1, 0), False, {2: 3, 1: 2}),
        ((2, 1), True, {2: 3, 1: 2, OTHER: 3}),
        ((7, 8), True, {OTHER: 5}),  # a row counts once for all that is not listed
    ]:
        work = GroupPass((key_column(source, "k", listed, other=other, several=True),), most=3)
        assert counted(work, gather(source, work)) == wanted


@pytest.mark.parametrize(
    "inner", [pl.Categorical(), pl.Enum(["a", "b"]), pl.Binary()], ids=["categorical", "enum", "binary"]
)
def test_lists_of_other_labels_hold_keys(inner: Any) -> None:
    cells = [["b", "a", "b"], ["b"]] if inner != pl.Binary else [[b"b", b"a", b"b"], [b"b"]]
    assert counted(*groups(pl.DataFrame({"k": pl.Series(cells, dtype=pl.List(inner))}), "k", most=2)) == {
        "a": 1,
        "b": 2,
    }


def test_only_lists_hold_several_keys() -> None:
    with pytest.raises(TypeError, match="max_keys"):
        groups(pl.DataFrame({"k": ["a"]}), "k", most=2)


def test_cells_by_key_and_several_passes_at_once() -> None:
    source, grid = open_source(TABLE), Grid(0, 0, 10)
    key = key_column(source, "k")
    both = Together((GroupPass((key,), VALUES), GroupPass((key, CellColumn("x", grid)))))
    assert both.columns == ("k", "x")
    state = gather(source, both)
    total = both.empty()
    for start in range(0, 6000, 1700):
        part = both.fold(both.empty(), nw.from_native(TABLE[start : start + 1700], eager_only=True))
        total = both.merge(total, both.unpack(both.pack(part)))
    for joint in (state, total):
        one, two = both.passes[1].cells(joint.parts[1], [("city 7",), ("nowhere",)])  # type: ignore[attr-defined]
        mine = TABLE.filter(pl.col("k") == "city 7")["x"].to_numpy()
        assert one.cells().tolist() == sorted(np.clip(np.rint(mine), 0, 10).astype(int).tolist())
        assert two.rows == 0
    odd = pl.DataFrame({"k": ["a"] * 4, "x": [None, float("nan"), float("inf"), 2.0]})
    work = GroupPass((key_column(open_source(odd), "k"), CellColumn("x", grid)), missing=True)
    assert work.cells(gather(open_source(odd), work), [("a",)])[0].cells().tolist() == [2, 10]


def test_nothing_to_group() -> None:
    work, state = groups(pl.DataFrame({"k": pl.Series([], dtype=pl.String), "x": []}), "k", values=VALUES)
    assert counted(work, state) == {}
    assert work.at(state, [("a",)])["rows"].tolist() == [0]
    assert work.at(state, []) == {name: pytest.approx([]) for name in work.sums}
    with pytest.raises(TableError, match="no column"):
        gather(open_source(pl.DataFrame({"y": ["a"]})), work)


def test_nothing_private_is_shown() -> None:
    work, state = groups(pl.DataFrame({"k": ["somebody"]}), "k")
    assert "somebody" not in repr(state) + repr(work) + repr(work.counts(state)[0])
