"""Public names, and which of them a cell is: one reading for all containers, and no name that it could confuse."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.tables.cells import Names
from snugdp.tables.cells import cell as one


def invalid_text() -> pa.Array:
    offsets = np.array([0, 1, 2], dtype=np.int32).tobytes()
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xffa")])


@pytest.mark.parametrize(
    ("column", "name", "count"),
    [
        (pa.array([0.0] * 9 + [-0.0]), 0.0, 10),
        (pl.Series([0.0] * 9 + [-0.0]), 0.0, 10),
        (pd.Series([0.0] * 9 + [-0.0], dtype="double[pyarrow]"), 0.0, 10),
        (np.array([2**52 + 1, 2**52]), 2**52 + 1, 1),
        (pa.array([2**52 + 1, 2**52, None]), 2**52 + 1, 1),
        (pl.Series("count", ["a", "b", None, "a"]), "a", 2),
        (pd.Series(["a", "b", None, "a"], name="count"), "a", 2),
        (pd.Series([1, 2, None, 1], dtype="category"), 1, 2),
        (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), "b", 1),
        (pl.Series([True, None, False]), True, 1),
        (np.ma.array(["a", "b", "a"], mask=[False, False, True]), "a", 1),
        (pl.Series([{"a": 1}, [1], 3], dtype=pl.Object), 3, 1),
        (pd.Series(pd.to_datetime(["2020-01-01", None])), datetime.date(2020, 1, 1), 1),
        (pl.Series([datetime.date(2020, 1, 1)]), "2020-01-01", 1),
        (invalid_text(), "a", 1),
    ],
    ids=lambda value: type(value).__module__ if hasattr(value, "__len__") and not isinstance(value, str) else None,
)
def test_typed_labels_are_counted_exactly(column: Any, name: Any, count: int) -> None:
    assert Names(["nobody's", name]).counts(column).tolist() == [0, count]


@pytest.mark.parametrize("make", [list, np.array, pl.Series, pd.Series, pa.array], ids=lambda make: make.__name__)
def test_one_odd_cell_does_not_change_what_the_others_are(make: Any) -> None:
    whole, spelled = make([1, 2, 2, 3]), make(["1", "2", "2", "?"])  # as a loader has them with and without the "?"
    for names in ([1, 2, 3], ["1", "2", "3"], [1.0, 2.0, 3.0]):
        assert Names(names).counts(whole).tolist() == [1, 2, 1]
        assert Names(names).indices(spelled).tolist() == [0, 1, 1, -1]


def test_labels_of_single_precision_and_one_that_is_text() -> None:
    names = Names([0.1, 0.2])
    plain = np.array([0.1, 0.2, 0.2], dtype=np.float32)
    for y in (plain, plain.astype(float), np.append(plain, "x")[:-1], [*plain, "x"][:-1], plain.tolist()):
        assert names.indices(y).tolist() == [0, 1, 1]


def test_labels_beyond_the_whole_floats_and_one_that_is_missing() -> None:
    cells = [2**53 + 2, 2**53 + 4, 2**53 + 1]
    names = Names([2**53, 2**53 + 2, 2**53 + 4])
    found = names.indices(cells).tolist()
    assert found == [1, 2, 0]  # 2**53 + 1 is no float: a missing cell beside it would have made it 2**53
    for y in (pd.Series([*cells, None])[:-1], np.array(cells), pl.Series(cells), [str(cell) for cell in cells]):
        assert names.indices(y).tolist() == found


@pytest.mark.parametrize(
    "names",
    [[1, "1"], [1, True], ["1", "1.0"], [2**53, 2**53 + 1], ["2020-01-01", datetime.date(2020, 1, 1)], ["a", "a"]],
)
def test_names_that_a_loader_could_confuse_are_refused(names: list[Any]) -> None:
    with pytest.raises(ValueError, match="the classes are the same label"):
        Names(names, "the classes")


@pytest.mark.parametrize("names", [[None, 1], [float("nan"), 1], ["nan", "x"], ["", "x"], [object(), 1]])
def test_names_that_stand_for_something_missing_are_refused(names: list[Any]) -> None:
    with pytest.raises(ValueError, match="missing"):
        Names(names)


@pytest.mark.parametrize("names", ["ab", b"ab", 5, [(1, 2)], [[1], [2]]])
def test_what_is_not_a_list_of_labels_is_refused(names: Any) -> None:
    with pytest.raises(TypeError, match="must be"):
        Names(names)


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9), st.floats(allow_nan=False), st.floats(width=32)
)
LABELS = NUMBERS.filter(lambda number: one.label(number) is not None)


@given(st.lists(LABELS, min_size=1, max_size=8, unique_by=one.label), st.lists(NUMBERS, max_size=20), st.data())
def test_numbers_of_a_declared_type_are_found_as_one_by_one(names: list[Any], more: list[Any], data: Any) -> None:
    kind = data.draw(st.sampled_from(["i1", "u1", "i2", "i4", "i8", "u8", "f4", "f8", "g", "?", ">i4", ">f8"]))
    known = Names(names)
    with np.errstate(all="ignore"):
        cells = np.array([*(float(name) for name in names), *map(float, more)]).astype(kind)
    assert known.of_numbers(cells).tolist() == [known.index(cell) for cell in cells]
    if kind != "f4":  # in which large names are refused
        assert known.indices(cells).tolist() == known.indices(list(cells)).tolist()
    square = np.stack([cells, cells])
    assert known.of_numbers(square[:, ::-1]).tolist() == known.of_numbers(square)[:, ::-1].tolist()
