"""Standardised rows: the image of a row is its own, bit by bit, in every container, block and order."""

import datetime
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import sparse

from snugdp.tables.found import Flag, FoundBounds, FoundLevels, FoundNumber
from snugdp.tables.layouts.arrays import ArraySource, Block
from snugdp.tables.layouts.boxes import BoxSchema
from snugdp.tables.layouts.standardised import StandardisedLayout, squared_lengths
from snugdp.tables.passes.base import row_map
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Boolean, Category, Date, Number, Schema
from tests.effort import often, repeated, sampled

HOSTILE = [0.0, -0.0, 1.0, -1.5, 1e300, -1e300, 5e-324, 2.0**60, math.inf, -math.inf, math.nan, 1e308, 3.3]
SCHEMA = Schema({name: Number() for name in ("a", "b", "c", "y")}, target="y")
TINY = FoundNumber(-1e308, 1e308, 0.0, 5e-324)  # quotients overflow
NUMBERS = {"a": FoundNumber(-2, 3, 0.5, 0.7), "b": TINY, "c": FoundNumber(0, 1, 1, 1e-3), "y": FoundNumber(-1, 4, 1, 1)}
PLACES = {"a": 0, "b": 1, "c": 2, "y": 3}

MIXED = Schema(
    {
        "x": Number(),
        "gone": Number(),
        "city": Category(),
        "member": Boolean(),
        "day": Date(parts=["weekday", "month"]),
        "plan": Category(["basic", "pro"]),
        "y": Number(0, 10),
    },
    target="y",
    missing={"x": "drop", "city": "indicator", "member": "indicator"},
)
FOUND: dict[str, Any] = {
    "x": FoundNumber(-2, 3, 0.5, 0.7),
    "gone": FoundNumber(-1, 1, 0, 0.5, Flag.NOT_FOUND),
    "city": FoundLevels(("Oslo", "Rome"), (0.3, 0.0), missing=0.2),
    "day": FoundNumber(18000, 19000, 18500, 200.0),
    "plan": FoundLevels(("basic", "pro"), (0.5, 0.5), Flag.PUBLIC),
    "y": FoundNumber(0, 10, 5, 2.5, Flag.PUBLIC),
}


def layout_of(joint: bool = True, constant: bool = True, radius: float = 2.0) -> StandardisedLayout:
    return StandardisedLayout(FoundBounds(SCHEMA, NUMBERS, 100.0, radius), constant, joint)


def mixed_layout(joint: bool = True) -> StandardisedLayout:
    return StandardisedLayout(FoundBounds(MIXED, FOUND, 100.0, 2.0), True, joint)


def made(rows: int, seed: int = 1) -> np.ndarray[Any, Any]:
    """Rows of which many cells are hostile, the target among them."""
    rng = np.random.default_rng(seed)
    usual, odd = rng.normal(size=(rows, 4)), rng.choice(HOSTILE, size=(rows, 4))
    return np.where(rng.random((rows, 4)) < 0.3, odd, usual)


def images(layout: StandardisedLayout, frame: Any) -> list[tuple[int, ...]]:
    """What statistics are taken of, row by row; rows that are left out are not there."""
    found: list[tuple[int, ...]] = []
    for X, y in layout.blocks(frame):
        V, w = row_map(layout).integers(X, y)
        found += [(*row, target) for row, target in zip(V.tolist(), w.tolist(), strict=True)]
    return found


def block(rows: Any) -> Block:
    return Block(rows[:, :3], np.asarray(rows[:, 3], dtype=np.float64), PLACES)


def eager(frame: Any) -> nw.DataFrame[Any]:
    return nw.from_native(frame, eager_only=True)


@sampled(2)
@pytest.mark.parametrize("joint", [True, False])
def test_every_row_has_an_image_of_its_own(joint: bool) -> None:
    rows, layout = made(400), layout_of(joint)
    alone = [images(layout, block(rows[k : k + 1])) for k in range(len(rows))]
    kept = [image for one in alone for image in one]
    assert [bool(one) for one in alone] == [not math.isnan(y) for y in rows[:, 3]]
    assert images(layout, block(rows)) == kept
    assert images(layout, block(rows[::-1])) == kept[::-1]
    assert images(layout, block(np.asfortranarray(rows))) == kept
    parts = [image for k in range(0, 400, 37) for image in images(layout, block(rows[k : k + 37]))]
    assert parts == kept


@pytest.mark.parametrize("joint", [True, False])
def test_containers_do_not_matter(joint: bool, tmp_path: Path) -> None:
    rows, layout = made(300), layout_of(joint)
    columns = {name: rows[:, place] for name, place in PLACES.items()}
    kept = images(layout, block(rows))
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        assert images(layout, eager(frame)) == kept
    boxes = BoxSchema(("a", "b", "c"), 1, 1, target_name="y")
    expected = Rows(ArraySource(rows[:, :3], rows[:, 3], boxes), layout).moments().to_bytes()
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    pa.csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    for data in (tmp_path / "t.parquet", tmp_path / "t.csv", pd.DataFrame(columns)):
        assert Rows(data, layout).moments().to_bytes() == expected
    for matrix in (sparse.csr_matrix(rows[:, :3]), sparse.csc_array(rows[:, :3]), rows[:, :3].tolist()):
        source = ArraySource(matrix, rows[:, 3], boxes)
        assert Rows(source, layout).moments().to_bytes() == expected


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_])
def test_types_of_numbers_are_widened(kind: Any) -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 100, size=(50, 4)).astype(kind)
    assert images(layout_of(), block(rows)) == images(layout_of(), block(rows.astype(np.float64)))


@pytest.mark.parametrize("joint", [True, False])
def test_rows_obey_their_bounds_and_nothing_is_said(joint: bool) -> None:
    rows, layout = made(500, seed=3), layout_of(joint)
    limits = row_map(layout).limits
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = images(layout, block(rows))
        answers = np.concatenate(list(layout.predictors(block(rows))))
    assert all(sum(v * v for v in row[:-1]) <= limits.norm_squared and abs(row[-1]) <= limits.target for row in found)
    assert len(answers) == len(rows)
    assert np.isfinite(answers).all()


def mixed(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)

    def some(values: list[Any]) -> list[Any]:
        return [values[k] for k in rng.integers(0, len(values), rows)]

    days = [datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]
    return {
        "x": some([0.1, -7.0, 2.0, None]),
        "gone": some([1.0, None]),
        "city": some(["Oslo", "Rome", "Bonn", "", None]),
        "member": some([True, False, None]),
        "day": some(days),
        "plan": some(["basic", "pro", "other", None]),
        "y": some([1.0, 12.0, None]),
    }


@sampled(2)
@repeated
@pytest.mark.parametrize("joint", [True, False])
def test_kinds_of_columns(joint: bool) -> None:
    count = often(60, 300)
    columns, layout = mixed(count), mixed_layout(joint)
    whole = pl.DataFrame(columns)
    kept = images(layout, eager(whole))
    alone = [image for k in range(count) for image in images(layout, eager(whole[k]))]
    assert kept == alone
    assert len(kept) == sum(x is not None and y is not None for x, y in zip(columns["x"], columns["y"], strict=True))
    for frame in (pd.DataFrame(columns), whole.to_arrow(), whole.to_pandas()):
        assert images(layout, eager(frame)) == kept
    assert sum(map(len, layout.predictors(eager(whole)))) == count  # every row has a prediction


def test_entries_of_a_row() -> None:
    layout = mixed_layout(joint=False)
    assert layout.features == (
        "x", "gone", "city=Oslo", "city=Rome", "city is missing", "member", "member is missing", "day",
        "day.weekday.sin", "day.weekday.cos", "day.month.sin", "day.month.cos", "plan=basic", "plan=pro", "intercept",
    )  # fmt: skip
    row = {"x": 9.0, "gone": 9.0, "city": None, "member": False, "plan": "pro", "y": 9.0}
    frame = pl.DataFrame({**{name: [cell] for name, cell in row.items()}, "day": [datetime.date(2020, 1, 6)]})
    ((X, y),) = layout.blocks(eager(frame))
    Y = dict(zip(layout.features, X[0].tolist(), strict=True))
    assert Y["x"] == (3 - 0.5) / 0.7
    assert Y["gone"] == 0
    assert Y["intercept"] == 1
    assert Y["city is missing"] == pytest.approx(1 / math.sqrt(0.2 * 0.8))
    assert Y["city=Oslo"] == Y["city=Rome"] == 0
    assert (Y["member"], Y["member is missing"], Y["plan=basic"], Y["plan=pro"]) == (-1, 0, 0, 2)
    assert Y["day"] == (18267 - 18500) / 200
    assert Y["day.weekday.sin"] ** 2 + Y["day.weekday.cos"] ** 2 == pytest.approx(2)
    assert y is not None
    assert y[0] == pytest.approx(0.8)


def test_an_indicator_is_there_unless_nothing_is_missing() -> None:
    """Where nobody looked at the share of missing cells, they have one too."""
    declared = Schema({"x": Number(), "z": Number(), "p": Number(0, 1), "y": Number()}, target="y", missing="indicator")
    columns = {**dict.fromkeys("xzpy", FoundNumber(0, 1, 0.5, 0.2))}
    columns |= {"x": replace(columns["x"], missing=0.0), "z": replace(columns["z"], missing=0.3)}
    names = StandardisedLayout(FoundBounds(declared, columns, 10.0, 1.0)).features
    assert names == ("x", "z", "z is missing", "p", "p is missing", "intercept")


@pytest.mark.parametrize("joint", [True, False])
def test_coefficients_are_in_the_units_of_the_table(joint: bool) -> None:
    """A linear function of rows that nothing clips or shortens is the same in both units."""
    bounds = {name: FoundNumber(-9, 11, 0.5, 2.0) for name in "abcy"}
    layout = StandardisedLayout(FoundBounds(SCHEMA, bounds, 100.0, 1000.0), True, joint)
    rng = np.random.default_rng(1)
    rows, theta = rng.normal(size=(20, 4)), rng.normal(size=4)
    (vectors,) = layout.predictors(block(rows))
    shown, (middle, half) = layout.coefficients(theta), layout.target_units
    assert rows[:, :3] @ shown.values + shown.intercept == pytest.approx(middle + half * (vectors @ theta))


def test_how_skewed_a_target_is() -> None:
    """From what was seen of it alone: bounds reach further out on both sides."""

    def skew(*found: Any) -> float:
        return StandardisedLayout(FoundBounds(SCHEMA, dict.fromkeys("abcy", FoundNumber(*found)), 9.0, 1.0)).target_skew

    assert skew(-90, 90, 2.0, 1.0, Flag.FOUND, 0.0, (0.0, 8.0)) == skew(-90, 90, 6.0, 1.0, Flag.FOUND, 0.0, (0.0, 8.0))
    assert skew(-90, 90, 2.0, 1.0, Flag.FOUND, 0.0, (0.0, 8.0)) == 3
    assert skew(-90, 90, 0.0, 1.0, Flag.FOUND, 0.0, (0.0, 8.0)) == math.inf
    assert skew(0, 8, 2.0, 1.0, Flag.PUBLIC) == 1


def test_a_long_row_is_shortened_with_its_target() -> None:
    bounds = {name: FoundNumber(-100, 100, 0, 1.0, Flag.PUBLIC) for name in "abcy"}
    schema = Schema({name: Number(-100, 100) for name in "abcy"}, target="y")
    layout = StandardisedLayout(FoundBounds(schema, bounds, 10.0, 2.0))
    ((X, y),) = layout.blocks(block(np.array([[30.0, -40.0, 0.0, 50.0]])))
    length = math.sqrt(1 + 30**2 + 40**2)
    assert y is not None
    assert np.linalg.norm(X[0]) == pytest.approx(1, abs=1e-6)
    assert X[0, 3] == pytest.approx(1 / length, rel=1e-6)
    assert y[0] == pytest.approx(0.5 * 2 / length, rel=1e-6)


@pytest.mark.parametrize(("joint", "constant"), [(True, True), (True, False), (False, True), (False, False)])
def test_bounds_of_a_row_do_not_depend_on_what_was_found(joint: bool, constant: bool) -> None:
    maps = set()
    for levels, radius, missing in [(1, 1e-300, 0.0), (7, 1e300, 0.5), (8000, 3.0, 0.99)]:
        city = FoundLevels(tuple(map(str, range(levels))), (1 / levels,) * levels, missing=missing)
        found = FoundBounds(MIXED, {**FOUND, "city": city}, 1.0, radius)
        one = row_map(StandardisedLayout(found, constant, joint))
        maps.add((one.feature_bound, one.target_bound, one.bits, one.constant, one.limits.norm_squared))
    assert len(maps) == 1
    bound, target, _, has_constant, _ = maps.pop()
    assert (bound, target, has_constant) == (Fraction(1 if joint else 2), Fraction(1), constant and not joint)


def test_rows_to_predict_from_may_be_twice_as_long() -> None:
    found = FoundBounds(
        Schema({"x": Number(), "b": Boolean()}, target="b"), {"x": FoundNumber(-100, 100, 0.0, 1.0)}, 1.0, 1.0
    )
    layout = StandardisedLayout(found, joint=False)
    (vectors,) = layout.predictors(Block(np.array([[0.5], [1.5], [2.0], [7.0]]), None, {"x": 0}))
    assert np.allclose(vectors, [[1, 1], [3, 1], [4, 1], [4, 1]])


@pytest.mark.parametrize("odd", [0.5, 1e3, 2.0**11, 1e12, 1e200, -math.inf, math.nan])
def test_the_length_of_a_row_does_not_depend_on_long_rows_beside_it(odd: float) -> None:
    X = np.random.default_rng(5).uniform(-1, 1, (40, 6))
    X[3, 2] = odd
    with np.errstate(all="ignore"):
        together = squared_lengths(X)
        alone = np.concatenate([squared_lengths(X[place : place + 1]) for place in range(len(X))])
    assert together.tobytes() == alone.tobytes()
    largest = math.isqrt(2**53 // 6) * 2.0**-16  # where an entry is clipped
    for row, length in zip(X, together, strict=True):
        if not np.isnan(row).any():
            cells = [math.trunc(Fraction(min(max(x, -largest), largest)) * 2**16) for x in row]
            assert Fraction(length) * 4**16 == sum(n * n for n in cells)
