"""Histograms on a logarithmic scale: the bins of a search among the edges, from exponents; and what a row adds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from snugdp import Number, Schema
from snugdp.tables import rows
from snugdp.tables.passes.base import RowPass, Sums, row_map
from snugdp.tables.passes.vectors import distances
from snugdp.tables.passes.vectors.distances import ResidualSumPass, TargetHistogramPass
from snugdp.tables.rows import Rows


@pytest.mark.parametrize("top", [1.0, 3.0, 1234567.0, 2.0**20, 2.0**42 - 1])
@pytest.mark.parametrize("count", [2, 3, 5, 24, 80])
@pytest.mark.parametrize("halves", [False, True])
def test_bins_are_those_of_a_search(top: float, count: int, halves: bool) -> None:
    if halves:
        edges = [math.ldexp(top * (math.sqrt(0.5) if k % 2 else 1.0), -(k // 2)) for k in range(1, count)]
    else:
        edges = [math.ldexp(top, -k) for k in range(1, count)]
    near = [np.array(edges), np.nextafter(edges, 0.0), np.nextafter(edges, np.inf)]
    spread = np.exp(np.random.default_rng(count).uniform(-40, math.log(top) + 2, 3000))
    sizes = np.concatenate([[0.0, 5e-324, top, 2 * top, 1e300, np.inf, np.nan], *near, spread, np.arange(50.0)])
    searched = len(edges) - np.searchsorted(edges[::-1], sizes, side="right")
    assert distances._binned(sizes, edges) == np.bincount(searched, minlength=count).tolist()
    assert distances._binned(np.empty(0), edges) == [0] * count


ODD = [math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, 1.0, -1.0, None]
WAYS = [(1 << 30, None), (0, None), (64, 1), (0, 10**9)]
"""Bytes in memory, and rows that are enough: kept in memory, in a file, in part, and not at all."""


def _tables(times: int) -> Iterator[tuple[Schema, pl.DataFrame, np.random.Generator]]:
    """Small tables of one to four columns, with odd cells, at all scales."""
    for seed in range(times):
        rng = np.random.default_rng(seed)
        names, scale = [f"x{place}" for place in range(rng.integers(1, 5))], 10.0 ** rng.integers(-3, 4)
        schema = Schema(
            {**{name: Number(-scale, scale) for name in names}, "y": Number(-scale, 2 * scale)},
            target="y",
            intercept=bool(rng.integers(2)),
            missing="drop" if rng.random() < 0.5 else "centre",
        )
        number = int(rng.integers(1, 8))
        columns = {name: [_cell(rng, scale) for _ in range(number)] for name in (*names, "y")}
        yield schema, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64)), rng


def _cell(rng: np.random.Generator, scale: float) -> float | None:
    if rng.random() < 0.25:
        return ODD[rng.integers(len(ODD))]
    return float(scale * rng.normal() * 10.0 ** rng.integers(-6, 3))


def test_a_row_adds_what_it_adds_alone_wherever_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for schema, frame, rng in _tables(60):
        entries, clip = row_map(schema).entries, int(rng.integers(1, 1 << 23))
        theta = (rng.normal(size=entries) * 10.0 ** rng.integers(-3, 9)).tolist()
        residuals, targets = ResidualSumPass(schema, theta, clip=clip), TargetHistogramPass(schema)
        own = [_values(Rows(frame[-1:], schema), residuals, targets)]
        own += [_values(Rows(frame[:-1], schema), residuals, targets)]
        for memory, enough in WAYS:
            monkeypatch.setattr(rows, "MAX_BYTES", memory)
            table = Rows(frame, schema)
            table.read(keep=True, enough=enough)
            assert _values(table, residuals, targets) == [a + b for a, b in zip(*own, strict=True)]
        total, *counts = own[0]
        assert abs(total) <= clip
        assert sorted(counts)[:-1] == [0] * (len(counts) - 1)
        assert sum(counts) in (0, 1), "none, if the row is left out"


def _values(table: Rows, *works: RowPass[Sums]) -> list[int]:
    return [value for work in works for value in table.state(work).values()]
