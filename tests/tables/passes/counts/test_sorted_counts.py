"""Counts of values in files: the same as in memory, for every window of ranks, in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from snugdp import Simulation, interquartile_range, median, minimum, quantile, quantile_interval, quantiles
from snugdp.mechanisms.statistics.quantile_table import rows_between
from snugdp.tables.passes.counts import sorted_counts, value_counts
from snugdp.tables.passes.counts.sorted_counts import SortedCounts
from snugdp.tables.passes.counts.value_counts import GatheredCounts, ValueCounts, added_up


def in_a_file(
    cells: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch, most: int = 50, block: int = 16
) -> SortedCounts:
    monkeypatch.setattr(value_counts, "MAX_VALUES", most)
    monkeypatch.setattr(sorted_counts, "_BLOCK", block)
    parts = [GatheredCounts() for _ in range(3)]
    for place, some in enumerate(np.array_split(cells, 40)):
        parts[place % 3].add(ValueCounts.of(some))
    found = parts[0].join(parts[1]).join(parts[2]).ranked()
    assert isinstance(found, SortedCounts)
    return found


@pytest.mark.parametrize("spread", [80, 10**12])
def test_every_window_of_ranks_is_as_in_memory(spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(3).integers(-spread, spread, 900)
    here, there = ValueCounts.of(cells), in_a_file(cells, monkeypatch)
    assert there.rows == here.rows == 900
    for start in range(0, 900, 7):
        for stop in {start + 1, min(start + 30, 900), 900}:
            one, other = here.between(start, stop), there.between(start, stop)
            assert one[1] == other[1]
            assert one[0].values.tolist() == other[0].values.tolist()
            assert one[0].counts.tolist() == other[0].counts.tolist()
    assert sum(block.rows for block in there.blocks()) == 900
    for edges in ((-spread, 3, spread), (-spread, -7, -7 + 1, 30, spread)):
        assert rows_between(edges, there) == rows_between(edges, here) == rows_between(edges, cells)
    assert there.whole().values.tolist() == here.values.tolist()
    assert there.whole().counts.tolist() == here.counts.tolist()


def test_counts_are_added_up() -> None:
    found = added_up(np.array([5, 1, 5, 1, 2]), np.array([1, 2, 3, 4, 5]))
    assert (found.values.tolist(), found.counts.tolist()) == ([1, 2, 5], [6, 5, 4])
    empty = np.empty(0, dtype=np.int64)
    assert added_up(empty, empty).rows == 0


def test_queries_draw_the_same_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = np.random.default_rng(4).normal(50, 10, 5_000)
    pl.DataFrame({"age": values}).write_parquet(tmp_path / "people.parquet")
    monkeypatch.setattr(value_counts, "MAX_VALUES", 300)
    for ask in (
        lambda data, **more: median(data, bounds=(0, 100), epsilon=1, noise=Simulation(1), **more),
        lambda data, **more: quantile(data, 0.9, bounds=(0, 100), epsilon=1, noise=Simulation(1), **more),
        lambda data, **more: minimum(data, bounds=(0, 100), epsilon=1, noise=Simulation(1), **more),
        lambda data, **more: quantiles(data, [0.2, 0.7], bounds=(0, 100), epsilon=1, noise=Simulation(1), **more),
    ):
        assert ask(values).value == ask(tmp_path / "people.parquet", column="age").value


def test_pairs_of_quantiles_never_hold_a_column(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two quantiles, the range between them and an interval around one read the few blocks that they need."""
    values = np.random.default_rng(4).normal(50, 10, 5_000)
    pl.DataFrame({"age": values}).write_parquet(tmp_path / "people.parquet")
    monkeypatch.setattr(value_counts, "MAX_VALUES", 300)
    given: dict[str, Any] = {"bounds": (0, 100), "epsilon": 1}
    asked: tuple[Callable[..., Any], ...] = (
        partial(quantiles, q=[0.2, 0.7], **given),
        partial(interquartile_range, **given),
        partial(quantile_interval, q=0.5, **given),
    )
    here = [str(ask(values, noise=Simulation(1)).value) for ask in asked]
    monkeypatch.setattr(SortedCounts, "whole", None)
    path = tmp_path / "people.parquet"
    assert [str(ask(path, column="age", noise=Simulation(1)).value) for ask in asked] == here


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty times as many values as are held at a time, all different."""
    cells = np.random.default_rng(5).permutation(400_000)
    tracemalloc.start()
    try:
        found = in_a_file(cells, monkeypatch, most=10_000, block=500)
        window, under = found.between(199_000, 201_000)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (window.rows, under) == (2_000, 199_000)
    assert held < 2_500_000  # bytes: all values and counts would be 6,400,000
