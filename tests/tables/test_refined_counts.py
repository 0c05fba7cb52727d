"""Counts that are refined around ranks: the same as in memory, in few passes and in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp.tables import engines, refined_counts
from snugdp.tables.grid import Grid
from snugdp.tables.passes.counts import window_counts
from snugdp.tables.passes.counts.value_counts import ValueCounts
from snugdp.tables.passes.counts.window_counts import Window, WindowCounts
from snugdp.tables.refined_counts import MAX_PASSES, RefinedCounts
from snugdp.tables.sources import open_source

GRID = Grid.between((-1, 1))
RNG = np.random.default_rng(2)
COLUMNS = {
    "even": RNG.uniform(-1, 1, 900),
    "ties": np.repeat([-1.0, 0.25, 0.250001, 1.0], [300, 1, 500, 99]),
    "heaps": np.concatenate([RNG.normal(0.3, 1e-9, 800), [-1.0, 1.0], np.full(98, 0.3)]),
    "far": np.concatenate([np.full(440, -1.0) + RNG.uniform(0, 1e-7, 440), 1 - RNG.uniform(0, 1e-7, 460)]),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Very few values are kept, so that small tables are refined."""
    monkeypatch.setattr(refined_counts, "MAX_SINGLE_VALUES", 8)
    monkeypatch.setattr(window_counts, "_BIN_BITS", 6)
    monkeypatch.setattr(window_counts, "_STEP", 100)
    monkeypatch.setattr(WindowCounts.__init__, "__defaults__", (None, 8))


@pytest.mark.parametrize("name", COLUMNS)
def test_every_window_of_ranks_is_as_in_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pl.DataFrame({"x": COLUMNS[name]}).write_parquet(tmp_path / "x.parquet", row_group_size=200)
    passes: list[str] = []

    def gather(*given: Any, **how: Any) -> Any:
        passes.append(name)
        return engines.gather(*given, **how)

    monkeypatch.setattr(refined_counts, "gather", gather)
    here = ValueCounts.of(GRID.cells(COLUMNS[name], None))
    for start, stop in ((0, 1), (0, 900), (449, 451), (430, 480), (1, 899), (299, 302), (899, 900)):
        passes.clear()
        there = RefinedCounts(open_source(tmp_path / "x.parquet"), "x", GRID, None)
        assert there.rows == here.rows == 900
        (one, below), (other, under) = here.between(start, stop), there.between(start, stop)
        assert (one.values.tolist(), one.counts.tolist(), below) == (
            other.values.tolist(), other.counts.tolist(), under,
        )  # fmt: skip
        assert len(passes) <= 2 + -(-(GRID.width.bit_length() - 3) // 5)  # a bin has 6 bits
    assert there.whole().values.tolist() == here.values.tolist()


def test_the_bound_on_passes() -> None:
    bits, refinements = 64, 0
    while bits > 14:
        bits, refinements = bits - 14, refinements + 1
    assert refinements + 2 == MAX_PASSES


def test_states_merge_in_every_order_and_travel() -> None:
    window = Window(GRID.lower // 2, GRID.upper // 2)
    work: Any = WindowCounts("x", GRID, window, None, 8)
    columns: list[Any] = [COLUMNS["even"], COLUMNS["ties"], COLUMNS["even"][:3], []]
    cells = [pl.DataFrame({"x": part}) for part in columns]

    def packed(order: list[int]) -> bytes:
        total = work.empty()
        for place in order:
            frame = nw.from_native(cells[place].cast({"x": pl.Float64}), eager_only=True)
            total = work.merge(total, work.unpack(work.pack(work.fold(work.empty(), frame))))
        return bytes(work.pack(total))

    assert len({packed(list(order)) for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 1, 3, 0])}) == 1
    found, places = work.unpack(packed([0, 1, 2, 3])), GRID.cells(np.concatenate(columns), None)
    assert found.below == (places < window.low).sum()
    assert found.rows == ((places >= window.low) & (places <= window.high)).sum()
    with pytest.raises(ValueError, match="not statistics"):
        work.unpack(work.pack(work.empty())[:-3])


def test_places_at_the_ends_of_64_bits() -> None:
    window = Window(-(2**63), 2**63 - 1)
    ends = np.array([-(2**63), -1, 0, 2**63 - 1])
    assert window.places(ends).tolist() == [0, window.bins // 2 - 1, window.bins // 2, window.bins - 1]
    assert window.part(window.bins - 1, window.bins - 1).high == 2**63 - 1
