"""Sums over columns: exact, the same for every order, partition and container; odd cells count by themselves."""

from __future__ import annotations

import math
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from snugdp.tables.cells import Names
from snugdp.tables.engines import Local, gather
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns import statistics as module
from snugdp.tables.passes.columns.statistics import (
    ALONE,
    CappedSums,
    EdgeCounts,
    LabelCounts,
    PowerSums,
    RowCount,
    StatisticsPass,
    TruthCounts,
)
from snugdp.tables.sources import TableError, open_source

STRANGE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324]
A, B = Grid.across((-50, 100), 40), Grid.across((0, 7), 24)
SMALL = Grid.across((-50, 100), 16), Grid.across((0, 7), 16)
CAPS = (1 << 20, 1 << 30, 1 << 36, A.upper)
CITIES = Names(["Rome", "Oslo"])
WORK = StatisticsPass(
    (
        RowCount(),
        PowerSums(("a",), (A,)),
        PowerSums(("b",), (B,), 2),
        PowerSums(("a", "b"), SMALL, 2),
        CappedSums("a", A, 0, CAPS),
        EdgeCounts("a", (-10.0, 0.0, 2.5, 60.0)),
        LabelCounts("city", CITIES),
        TruthCounts("member"),
    )
)


def table(seed: int, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {"a": rng.uniform(-80, 130, n), "b": rng.normal(3, 3, n)}
    for column in numbers.values():
        some = rng.random(n) < 0.1
        column[some] = rng.choice(STRANGE, some.sum())
    numbers["a"][: n // 4] = rng.choice([-10.0, 0.0, 2.5, 60.0], n // 4)
    cities = [("Rome", "Oslo", "Paris", None, "")[i] for i in rng.integers(0, 5, n)]
    member = [(True, False, None)[i] for i in rng.integers(0, 3, n)]
    return pl.DataFrame({**numbers, "city": cities, "member": member})


def state(native: Any, work: StatisticsPass = WORK) -> list[list[int]]:
    return work.parts(gather(open_source(native), work))


def by_hand(frame: pl.DataFrame) -> list[list[int]]:
    """Row by row, in Python integers."""

    def cell(grid: Grid, x: float) -> int:
        inside = min(max(x, -1e200), 1e200)
        return min(max(round(inside * 2.0**-grid.exponent), grid.lower), grid.upper) - grid.lower

    rows = list(frame.iter_rows(named=True))
    a = [row["a"] for row in rows if not math.isnan(row["a"])]
    b = [cell(B, row["b"]) for row in rows if not math.isnan(row["b"])]
    both = [
        (cell(SMALL[0], row["a"]), cell(SMALL[1], row["b"]))
        for row in rows
        if not (math.isnan(row["a"]) or math.isnan(row["b"]))
    ]
    signed = [cell(A, x) + A.lower for x in a]
    capped = []
    for side in (False, True):
        far = [abs(x) for x in signed if (x >= 0) == side]
        for power in (0, 1):
            for low, cap in zip((-1, *CAPS), CAPS, strict=False):
                capped.append(sum(int(x**power) for x in far if low < x <= cap))
    edges = [
        sum(x < -10 for x in a),
        sum(-10 <= x < 0 for x in a),
        sum(0 <= x < 2.5 for x in a),
        sum(2.5 <= x <= 60 for x in a),
        sum(x > 60 for x in a),
        len(rows) - len(a),
    ]
    cities = [row["city"] or None for row in rows]
    members = [row["member"] for row in rows]
    return [
        [len(rows)],
        [len(a), sum(cell(A, x) for x in a)],
        [len(b), sum(b), sum(x * x for x in b)],
        [sum(x**i * y**j for x, y in both) for i, j in product(range(3), repeat=2)],
        capped,
        edges,
        [cities.count("Rome"), cities.count("Oslo"), cities.count("Paris"), cities.count(None)],
        [members.count(False), members.count(True), members.count(None)],
    ]


def test_the_sums_are_those_of_python_integers() -> None:
    frame = table(1, 700)
    assert state(frame) == by_hand(frame)


def test_every_order_partition_and_container_gives_the_same(tmp_path: Path) -> None:
    frame = table(2, 5000)
    want = state(frame)
    assert state(frame.sample(fraction=1, shuffle=True, seed=3)) == want
    assert state(frame.to_pandas()) == want
    assert state(frame.to_arrow()) == want
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    assert state(str(tmp_path / "t.parquet")) == want
    assert state(str(tmp_path / "t.csv")) == want
    assert WORK.parts(Local(threads=3).run(open_source(frame), WORK)) == want
    parts = WORK.empty()
    for cut in (frame[:17], frame[17:3000], frame[3000:]):
        travelled = WORK.unpack(WORK.pack(WORK.fold(WORK.empty(), nw.from_native(cut, eager_only=True))))
        parts = WORK.merge(parts, travelled)
    assert WORK.parts(parts) == want


def test_a_column_by_itself_is_read_as_in_a_table() -> None:
    frame = table(4, 400)
    work = StatisticsPass((PowerSums(("a",), (A,)), EdgeCounts("a", (0.0, 5.0))))
    assert work.alone(frame["a"]) == state(frame, work)
    both = StatisticsPass((PowerSums(("a", "b"), SMALL, 2),))
    assert both.alone(frame["a"].to_list(), frame["b"].to_numpy()) == state(frame, both)
    with pytest.raises(ValueError, match="same number of rows"):
        both.alone([1.0], [1.0, 2.0])
    assert StatisticsPass((TruthCounts(ALONE),)).alone(["yes", "F", "?"]) == [[1, 1, 1]]


def test_the_pass_travels() -> None:
    again = pickle.loads(pickle.dumps(WORK))
    frame = table(5, 300)
    assert state(frame, again) == state(frame)


def test_long_products_are_cut_and_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    top = 1 << 40
    first, second = (rng.integers(0, top + 1, 5000) for _ in range(2))
    exact = sum(int(x) * int(y) for x, y in zip(first, second, strict=True))
    assert module._exact_sum([(first, top), (second, top)], 5000) == exact
    assert module._exact_sum([(np.full(3000, top), top), (np.full(3000, top), top)], 3000) == 3000 * top**2
    monkeypatch.setattr(module, "_MAX_SUM", 1 << 50)
    assert module._exact_sum([(first, top)], 5000) == int(first.astype(object).sum())


def test_clipped_sums_are_sums_of_clipped_numbers() -> None:
    rng = np.random.default_rng(6)
    for bounds, degree in (((-40, 100), 2), ((0, 90), 1), ((-90, -2), 2)):
        grid = Grid.across(bounds, 20)
        centre = min(max(0, grid.lower), grid.upper)
        far = max(grid.upper - centre, centre - grid.lower)
        measure = CappedSums(ALONE, grid, centre, (far // 9, far // 3, far // 2, far), degree)
        values = rng.normal(10, 60, 500)
        (sums,) = StatisticsPass((measure,)).alone(values)
        cells = grid.integers(values, 0)
        assert measure.above(sums) == [int((np.abs(cells - centre) > cap).sum()) for cap in measure.caps]
        for place in range(4):
            low, high = measure.low(place), measure.high(place)
            clipped = [int(x) - low for x in np.clip(cells, low, high)]
            assert measure.clipped(sums, place) == [sum(x**p for x in clipped) for p in range(degree + 1)]


@pytest.mark.parametrize("caps", [(1,), (1, 2, 3), (5, 6, 7, 8, 9, 10, 11, 4000), tuple(range(1, 300)), CAPS])
def test_the_place_of_a_distance_is_the_first_cap_not_below_it(caps: tuple[int, ...]) -> None:
    rng = np.random.default_rng(9)
    measure = CappedSums(ALONE, Grid(0, 0, caps[-1]), 0, caps)
    near = np.array([cap + step for cap in caps for step in (-1, 0, 1)])
    spread = (caps[-1] * rng.random(2000) ** 6).astype(np.int64)
    distance = np.concatenate([near, spread, [0, 1, caps[-1]]]).clip(0, caps[-1])
    assert measure._places(distance).tolist() == np.searchsorted(np.array(caps), distance).tolist()


def test_single_precision_has_the_cell_of_its_widening() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.7], dtype=np.float32)
    work = StatisticsPass((EdgeCounts(ALONE, (0.1, 0.2, 0.7)), PowerSums((ALONE,), (Grid.across((0, 1), 40),))))
    assert work.alone(values) == work.alone(values.astype(np.float64))
    assert work.alone(pd.Series(values)) == work.alone(values.astype(np.float64))


def test_what_cannot_be_read_is_refused_in_public() -> None:
    frame = table(7, 20)
    with pytest.raises(TableError, match='no column "income"'):
        state(frame, StatisticsPass((PowerSums(("income",), (A,)),)))
    dated = frame.with_columns(a=pl.lit("2020-01-01").str.to_date())
    with pytest.raises(TypeError, match='column "a" must hold numbers, not Date'):
        state(dated, StatisticsPass((PowerSums(("a",), (A,)),)))


def test_bounds_that_no_grid_can_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="subtract a public constant"):
        Grid.across((1e15, 1e15 + 1), 40)
    assert Grid.across((0.1, 0.3), 16).lower * Grid.across((0.1, 0.3), 16).unit <= 0.1
