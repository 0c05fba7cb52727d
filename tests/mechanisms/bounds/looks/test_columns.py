"""Looks paid by a share: what a row moves by brute force, what they cost exactly, and what they find."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp import Budget, Neighbours, Simulation
from snugdp.mechanisms.bounds.looks import grid, laplace
from snugdp.mechanisms.bounds.looks.columns import ColumnLooks, clear_rows
from snugdp.noise import DiscreteLaplace
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret, unwrap
from snugdp.tables.found import Flag
from snugdp.tables.opened import OpenedTable
from snugdp.tables.sources import open_source
from tests.effort import often, repeated, sampled

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
CELLS = (0.0, -0.0, 1.5, -3.0, math.inf, -math.inf, 1e300, None)


class Recorded(Simulation):
    """Writes down the counts and the laws; says what it is told, or what it draws."""

    def __init__(self, answers: list[Any] | None = None, seed: int = 0) -> None:
        super().__init__(seed)
        self.answers, self.seen, self.said = answers, list[tuple[list[int], Any]](), list[Any]()

    def add_integers(self, values: Any, law: Any) -> list[int]:
        self.seen.append(([int(value) for value in unwrap(values)], law))
        drawn = super().add_integers(values, law) if self.answers is None else self.answers[len(self.said)]
        self.said.append(drawn)
        return list(drawn)

    def lost(self, other: Recorded) -> tuple[Fraction, Fraction]:
        """What the two tables lose against each other at most: epsilon, and mu squared."""
        epsilon = square = Fraction(0)
        for (mine, law), (yours, same) in zip(self.seen, other.seen, strict=True):
            assert law == same
            moves = [abs(a - b) for a, b in zip(mine, yours, strict=True)]
            if isinstance(law, DiscreteLaplace):
                epsilon += sum(moves) / law.scale
            else:
                square += sum(move**2 for move in moves) / law.sigma**2
        return epsilon, square


def table(rows: list[Any], columns: int = 1) -> Secret[OpenedTable]:
    rows = [row if isinstance(row, tuple) else (row,) * columns for row in rows]
    held = {f"x{i}": pl.Series([row[i] for row in rows], dtype=pl.Float64) for i in range(columns)}
    return Secret(OpenedTable(open_source(pl.DataFrame(held)), progress=False))


def looks(pure: bool, relation: Neighbours = ADD, columns: int = 1, **given: Any) -> ColumnLooks:
    budget = Budget(1, 0 if pure else 1e-6, relation)
    share = (Share.pure(budget) if pure else Share.gaussian(budget)).part(Fraction(1, 5))
    return ColumnLooks(tuple(f"x{i}" for i in range(columns)), share, **given)


def first_look(made: ColumnLooks, rows: list[Any]) -> Recorded:
    noise = Recorded([[0] * 164])
    assert made.certify(table(rows), noise) is None
    return noise


@sampled(2)
@repeated
@pytest.mark.parametrize("pure", [True, False])
def test_what_a_row_moves_by_brute_force(pure: bool) -> None:
    """All pairs of a small universe, odd cells among them: no more than the first look was paid for, and all of it."""
    for relation in (ADD, REPLACE):
        made, found = looks(pure, relation), set()
        paid = made.noise(0, 1).share
        for kept in CELLS[: often(1, 3)]:
            others = [[kept, old] for old in CELLS] if relation is REPLACE else [[kept]]
            seen = [[first_look(made, rows) for rows in side] for side in ([[kept, new] for new in CELLS], others)]
            for first, second in product(*seen):
                epsilon, square = first.lost(second)
                assert epsilon <= paid.epsilon
                assert square <= paid.mu_squared
                found.add(max(epsilon, square))
        assert float(max(found)) == pytest.approx(float(max(paid.epsilon, paid.mu_squared)))


@sampled(3)
@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("columns", [1, 2])
def test_all_looks_together_cost_the_share(pure: bool, relation: Neighbours, columns: int) -> None:
    """On columns that are zoomed to the end; the same answers on the neighbour."""
    made = looks(pure, relation, columns)
    rows: list[Any] = [5.0] * 9000
    first = Recorded(seed=3)
    seen = made.certify(table([*rows, 5.0], columns), first)
    assert seen is not None
    assert len(first.seen) == 4
    assert Flag.CONSTANT in {one.flag for one in seen.columns.values()}  # the other may have a tail of noise
    second = Recorded(first.said)
    assert made.certify(table([*rows] if relation is ADD else [*rows, -1e30], columns), second) == seen
    epsilon, square = first.lost(second)
    assert epsilon <= made.cost.epsilon
    assert square <= made.cost.mu_squared
    if relation is ADD:  # attained: with less noise it would not be true
        assert float(max(epsilon, square)) == pytest.approx(float(max(made.cost.epsilon, made.cost.mu_squared)))
    assert sum((step.cost for step in made.steps()[1:]), made.steps()[0].cost) == made.cost
    assert [step.id for step in made.steps()] == ["grid", "zoom", "zoom-2", "zoom-3"]


@pytest.mark.parametrize("cells", [1, 2, 4, 8])
def test_the_tail_of_sums_of_laplace_noise(cells: int) -> None:
    rng = np.random.default_rng(5)
    sums = rng.laplace(size=(400_000, cells)).sum(axis=1)
    for reach in (0.0, 0.7, 2.5, 5.0):
        exact = laplace.tail(cells, reach)
        assert abs(exact - np.mean(sums > reach)) < 5 * math.sqrt(exact / 400_000)
    for rare in (0.005 / 724, 1e-3, 0.2):
        assert laplace.tail(cells, laplace.quantile(cells, rare)) <= rare
        assert laplace.tail(cells, laplace.quantile(cells, rare) - 1e-6) > rare


@pytest.mark.parametrize("scale", [0.4, 3.0, 12.0])
def test_discrete_sums_stay_below_what_is_clear_of_noise(scale: float) -> None:
    rng = np.random.default_rng(6)
    share = 1 - math.exp(-1 / scale)
    sums = (rng.geometric(share, (300_000, 4)) - rng.geometric(share, (300_000, 4))).sum(axis=1)
    assert np.mean(sums > laplace.clear(4, scale, 1e-3)) <= 1e-3 + 5 * math.sqrt(1e-3 / 300_000)


@sampled(2)
@repeated
@pytest.mark.parametrize("pure", [True, False])
def test_nothing_is_found_where_there_is_nothing(pure: bool) -> None:
    made = looks(pure)
    found = [made.certify(table([]), Simulation(seed)) for seed in range(often(30, 60))]
    assert sum(one is not None for one in found) <= 2  # at most one in 200


@pytest.mark.parametrize("pure", [True, False])
def test_what_is_found(pure: bool) -> None:
    rows = np.random.default_rng(1).normal(50, 10, 3000).tolist() + [None] * 1000
    made = looks(pure)
    seen = made.certify(table(rows), Simulation(1))
    assert seen is not None
    found = seen.columns["x0"]
    assert found.flag is Flag.FOUND
    assert found.lower < 30
    assert found.upper > 70
    assert found.upper - found.lower < 250
    assert abs(found.centre - 50) < 2
    assert abs(found.scale - 10) < 4
    assert found.missing == pytest.approx(0.25, abs=0.05)
    assert 2500 < seen.rows <= 3100


@pytest.mark.slow
@repeated
def test_as_many_rows_as_are_needed() -> None:
    draws = often(15, 40)
    for pure in (True, False):
        made = looks(pure)
        data = table([70.0] * made.rows_needed)
        found = sum(made.certify(data, Simulation(seed)) is not None for seed in range(draws))
        assert found >= 0.7 * draws  # five of six


def test_a_heap_of_zeros_is_flagged() -> None:
    rows = [0.0] * 130 + np.exp(np.random.default_rng(2).normal(3, 3, 40)).tolist()
    assert looks(True).certify(table(rows), Simulation(4)) is None  # an answer near 0 would say nothing of the others
    seen = replace(looks(True), partial=True).certify(table(rows), Simulation(4))
    assert seen is not None
    assert seen.columns["x0"].flag is Flag.CONSTANT


def test_some_columns_alone() -> None:
    rows = [(50.0 + i % 9, float(i) if i < 5 else None) for i in range(4000)]
    assert looks(True, columns=2).certify(table(rows, 2), Simulation(1)) is None
    seen = looks(True, columns=2, partial=True).certify(table(rows, 2), Simulation(1))
    assert seen is not None
    assert [seen.columns[name].flag for name in ("x0", "x1")] == [Flag.FOUND, Flag.NOT_FOUND]


def test_public_ends_are_kept() -> None:
    rows = np.random.default_rng(1).exponential(3, 3000).tolist()
    seen = looks(True, known={"x0": (0.0, None)}).certify(table(rows), Simulation(1))
    assert seen is not None
    assert seen.columns["x0"].lower == 0


def test_more_rows_are_asked_for_with_laplace_noise() -> None:
    sets = grid.doubling_sets()
    pure, gaussian = (clear_rows(sets, looks(kind).noise(0, 1), 1) for kind in (True, False))
    assert (pure > gaussian).all()
    assert pure[0] == pytest.approx(12 * math.log(724 / 0.01) + 1, rel=1e-2)
