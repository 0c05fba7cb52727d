"""A table of quantiles: the joint law of edges and counts, and what one row can do to the counts."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.order_statistics.rank_draw import Points
from snugdp.mechanisms.statistics.quantile_table import QuantileTableDraw, rows_between
from snugdp.noise import Simulation
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.value_counts import ValueCounts


@given(st.lists(st.integers(0, 20), max_size=30), st.sets(st.integers(1, 19), max_size=5))
def test_every_row_is_in_one_part(rows: list[int], inner: set[int]) -> None:
    edges, cells = (0, *sorted(inner), 20), np.array(rows, dtype=np.int64)
    counts = rows_between(edges, cells)
    last = len(edges) - 2
    parts = [
        sum(low <= row < high or (place == last and row == high) for row in rows)
        for place, (low, high) in enumerate(pairwise(edges))
    ]
    assert counts == parts == rows_between(edges, ValueCounts.of(cells))
    assert sum(counts) == len(rows)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("bins", [2, 3, 8, 40])
def test_the_plan_fits_the_budget_and_no_more_does(relation: str, delta: float, bins: int) -> None:
    budget = Budget(1, delta, relation)
    made = QuantileTableDraw.within(budget, bins, Points(0, 1000))
    cost = sum((step.cost for step in made.steps()[1:]), made.steps()[0].cost)
    assert cost.fits(budget)
    assert not cost.fits(Budget(0.95, delta, relation))
    assert made.counts.share == made.edges.share
    assert len(made.counts.moves) == bins


@pytest.mark.parametrize("relation", list(Neighbours))
def test_given_the_edges_one_row_moves_the_counts_by_what_the_noise_is_for(relation: Neighbours) -> None:
    """All tables of up to two rows on five cells, all edges, all neighbours, missing rows among them."""
    cells: list[Any] = [None, 0, 1, 2, 3, 4]
    moves = QuantileTableDraw.within(Budget(1, 0, relation), 3, Points(0, 4)).counts.moves
    farthest = Fraction(0)
    for edges in ((0, 4), (0, 2, 4), (0, 1, 3, 4)):
        for kept, one, two in product(cells, cells, cells):
            tables = [[kept, one], [kept, two] if relation is Neighbours.REPLACE else [kept]]
            first, second = (
                rows_between(edges, np.array([row for row in table if row is not None], dtype=np.int64))
                for table in tables
            )
            moved = sum(abs(a - b) / move for a, b, move in zip(first, second, moves, strict=False))
            farthest = max(farthest, Fraction(moved))
    assert farthest == 1


def test_edges_cut_into_parts_of_about_equal_size() -> None:
    rows = np.arange(10_000, dtype=np.int64) ** 2 // 1000
    made = QuantileTableDraw.within(Budget(2), 5, Points(0, 10**7))
    edges, counts = made.draw(Secret(rows), Simulation(3))
    assert len(counts) == len(edges) - 1 == 5
    assert counts == pytest.approx([2000] * 5, abs=60)


def test_equal_edges_are_shown_once() -> None:
    made = QuantileTableDraw.within(Budget(50), 8, Points(0, 100))
    edges, counts = made.draw(Secret(np.full(5000, 30, dtype=np.int64)), Simulation(1))
    assert len(set(edges)) == len(edges) == len(counts) + 1
    assert sum(counts) == pytest.approx(5000, abs=20)


@pytest.mark.parametrize("rows", [[], [3]])
def test_few_rows(rows: list[int]) -> None:
    made = QuantileTableDraw.within(Budget(1), 4, Points(0, 10))
    edges, counts = made.draw(Secret(np.array(rows, dtype=np.int64)), Simulation(2))
    assert edges[0] == 0
    assert edges[-1] == 10
    assert len(counts) == len(edges) - 1
