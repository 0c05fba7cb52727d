"""Counts of looks: the place of a cell is its own, in every container, order and partition."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from snugdp.secrecy.secret import unwrap
from snugdp.tables.engines import Local, measure
from snugdp.tables.layouts.arrays import ArraySchema, ArraySource, Block
from snugdp.tables.passes.columns.looks import BINS, Doublings, EqualBins, LookedAt, LookPass, doubling
from snugdp.tables.sources import TableError, open_source

POWERS = [2.0**k for k in (-1074, -1022, -21, -20, -19, -1, 0, 1, 59, 60, 61, 1023)]
AROUND = [value for power in POWERS for value in (power, math.nextafter(power, 0.0), math.nextafter(power, math.inf))]
NUMBERS = [0.0, -0.0, math.inf, -math.inf, 1e300, 3.7, *AROUND, *(-value for value in AROUND)]
NAN = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)


def by_hand(x: float) -> int:
    """The doubling, as it is defined."""
    if math.isnan(x):
        return 163
    if abs(x) < 2.0**-20:
        return 81
    if abs(x) >= 2.0**60:
        return 162 if x > 0 else 0
    power = next(k for k in range(-20, 60) if 2.0**k <= abs(x) < 2.0 ** (k + 1))
    return 102 + power if x > 0 else 60 - power


def test_every_number_is_in_its_doubling() -> None:
    for x in NUMBERS:
        counts = Doublings().tally(np.array([x]))
        assert counts.sum() == 1
        assert int(np.argmax(counts)) == by_hand(x) == doubling(np.array([x]))[0]


def test_all_that_is_no_number_is_missing_whatever_its_bits() -> None:
    odd = NAN.view(np.float64)
    counts = Doublings().tally(np.concatenate([odd, [math.inf, -math.inf, math.inf, 1.0]]))
    assert (counts[163], counts[162], counts[0], counts[102], counts.sum()) == (4, 2, 1, 1, 8)
    assert EqualBins(-1.0, 1.0).tally(odd).sum() == 0


def test_counts_of_many_are_sums_of_counts_of_one() -> None:
    values = np.random.default_rng(0).choice([*NUMBERS, math.nan], 5000)
    one_by_one = np.bincount([by_hand(x) for x in values.tolist()], minlength=164)
    assert Doublings().tally(values).tolist() == one_by_one.tolist()


@pytest.mark.parametrize("ends", [(0.0, 32.0), (-3.0, 5.0), (1024.0, 3072.0), (-(2.0**60), 2.0**61), (0.1, 0.7)])
def test_bins_are_equal_and_closed(ends: tuple[float, float]) -> None:
    lower, upper = ends
    places = EqualBins(*ends)
    exact, width = (Fraction(lower), Fraction(upper) - Fraction(lower)), (Fraction(upper) - Fraction(lower)) / BINS
    middles = [float(exact[0] + (place + Fraction(1, 2)) * width) for place in range(BINS)]
    assert places.tally(np.array(middles)).tolist() == [1] * BINS
    found = places.tally(np.array([lower, upper, math.nextafter(lower, -math.inf), math.nextafter(upper, math.inf)]))
    assert (found[0], found[-1], found.sum()) == (1, 1, 2)
    assert places.tally(np.array([math.inf, -math.inf, math.nan, 1e308, -1e308])).sum() == 0


def test_bins_need_two_ends() -> None:
    for ends in ((1.0, 1.0), (2.0, 1.0), (0.0, 5e-324), (math.nan, 1.0), (0.0, math.inf)):
        with pytest.raises(ValueError, match="two ends"):
            EqualBins(*ends)


def test_beyond_a_public_end_a_number_counts_as_that_end() -> None:
    column = np.array([-5.0, -math.inf, 0.5, 3.0, math.inf, math.nan])
    counts = LookedAt("x", ends=(0.0, None)).tally(column)
    assert (counts[:81].sum(), counts[81], counts[163], counts[162]) == (0, 2, 1, 1)
    bins = LookedAt("x", EqualBins(0.0, 3.0), (None, 3.0)).tally(column)
    assert (bins[-1], bins.sum()) == (2, 3)


COLUMNS: dict[str, Any] = {
    "a": np.array([*NUMBERS, math.nan] * 60),
    "b": np.random.default_rng(1).normal(100, 30, 60 * (len(NUMBERS) + 1)),
    "y": np.random.default_rng(2).integers(-5, 5, 60 * (len(NUMBERS) + 1)).astype(np.float64),
}
WORKS = (
    LookPass(tuple(LookedAt(name) for name in COLUMNS)),
    LookPass((LookedAt("y", EqualBins(-5.0, 4.0)), LookedAt("b", EqualBins(0.0, 210.0), (20.0, None)))),
)


def containers(folder: Path) -> list[Any]:
    table = pl.DataFrame(COLUMNS)
    table.write_parquet(folder / "t.parquet", row_group_size=500)
    table.with_columns(pl.col("a").fill_nan(None)).write_csv(folder / "t.csv")
    X = np.column_stack([COLUMNS["a"], COLUMNS["b"]])
    layout = ArraySchema(("a", "b"), x_norm=1, y_bound=1)
    frames = [table, table.with_columns(pl.col("a").fill_nan(None)), pd.DataFrame(COLUMNS), table.to_arrow()]
    arrays = [ArraySource(X, COLUMNS["y"], layout), ArraySource(np.asfortranarray(X), COLUMNS["y"], layout)]
    return [*frames, *arrays, folder / "t.parquet", folder / "t.csv"]


def test_the_same_bits_in_every_container(tmp_path: Path) -> None:
    for work in WORKS:
        whole = [column.tally(COLUMNS[column.name]).tolist() for column in work.looked_at]
        for data in containers(tmp_path):
            for state in (unwrap(measure(data, work)), Local(threads=3).run(open_source(data), work)):
                assert work.counts(state).tolist() == whole
                assert work.rows(state) == len(COLUMNS["a"])


def test_any_order_and_partition_gives_the_same() -> None:
    work, generator = WORKS[0], np.random.default_rng(3)
    order = generator.permutation(len(COLUMNS["a"]))
    frame = nw.from_native(pl.DataFrame({name: column[order] for name, column in COLUMNS.items()}), eager_only=True)
    state = work.empty()
    for start in range(0, len(order), 701):
        part = work.fold(work.empty(), frame[start : start + 701])
        state = work.merge(state, work.unpack(work.pack(part)))
    assert work.counts(state).tolist() == [column.tally(COLUMNS[column.name]).tolist() for column in work.looked_at]
    assert repr(state) == "<private sums>"


def test_narrow_numbers_are_widened() -> None:
    single = np.array([0.1, 3e38, np.inf, np.nan], dtype=np.float32)
    assert LookedAt("x").tally(single).tolist() == Doublings().tally(single.astype(np.float64)).tolist()
    whole = pl.Series([1, 2**62, None])
    counts = LookedAt("x").tally(nw.from_native(whole, series_only=True))
    assert (counts[102], counts[162], counts[163]) == (1, 1, 1)
    assert LookedAt("x").tally(np.array([1, 0], dtype=np.int8))[[81, 102]].tolist() == [1, 1]


def test_a_reader_of_its_own() -> None:
    def days(column: nw.Series[Any]) -> Any:
        return np.array([math.nan if cell is None else float(cell.toordinal()) for cell in column.to_list()])

    work = LookPass((LookedAt("d", read=days),))
    table = pl.DataFrame({"d": [date(1, 1, 1), date(1, 1, 2), None]})
    found = work.counts(unwrap(measure(table, work)))[0]
    assert (found[102], found[103], found[163]) == (1, 1, 1)
    with pytest.raises(TypeError, match='"d" must hold numbers'):
        measure(table, LookPass((LookedAt("d"),)))
    with pytest.raises(TableError, match='no column "x"'):
        measure(table, LookPass((LookedAt("x"),)))


def test_a_block_without_a_target_has_none() -> None:
    block = Block(np.eye(2), None, {"a": 0, "b": 1, "y": 2})
    assert np.asarray(block.get_column("b")).tolist() == [0.0, 1.0]
    for name in ("y", "z"):
        with pytest.raises(KeyError):
            block.get_column(name)
