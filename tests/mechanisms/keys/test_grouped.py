"""Sums by key: what one row can lose, exactly, over all neighbours on a small universe and in both relations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import snugdp
from snugdp import Budget, Cost, Neighbours
from snugdp.mechanisms.keys.grouped import Asked, AskedRank, GroupedRelease
from snugdp.mechanisms.keys.moments import GroupMoments, Power
from snugdp.mechanisms.keys.ranks import GroupRanks
from snugdp.mechanisms.order_statistics.rank_draw import RankDraw
from snugdp.noise import DiscreteLaplace, Gaussian
from snugdp.noise.recording import Witness, private_inputs
from snugdp.propose.share import Share
from snugdp.tables.grid import Grid
from snugdp.tables.passes.counts.groups import BITS, UNIT
from tests.effort import sampled

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
ROWS = [(key, value) for key in ("a", "b", None) for value in (0.0, 1.0, 2.0, 7.5, 10.0, None)]


def table(rows: Any) -> pl.DataFrame:
    columns = [[row[place] for row in rows] for place in (0, 1)]
    return pl.DataFrame({"k": pl.Series(columns[0], dtype=pl.String), "x": pl.Series(columns[1], dtype=pl.Float64)})


def private(query: snugdp.GroupBy, rows: Any) -> list[tuple[list[int], Any]]:
    """What gets noise on this table, and of which law."""
    witness = Witness(1)
    query.release(table(rows), noise=witness)
    return [(np.asarray(private_inputs(site)[0]).tolist(), site.law) for site in witness.transcript()]


def lost(one: Any, other: Any) -> tuple[Fraction, Fraction]:
    """What two tables lose against each other at most: epsilon, and mu squared."""
    epsilon = square = Fraction(0)
    for (a, law), (b, _) in zip(one, other, strict=True):
        changes = [abs(Fraction(int(x)) - int(y)) for x, y in zip(a, b, strict=True)]
        if isinstance(law, DiscreteLaplace):
            epsilon += sum(changes, Fraction(0)) / law.scale
        else:
            square += sum((change**2 for change in changes), Fraction(0)) / law.sigma**2
    return epsilon, square


@sampled(18)
@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("statistic", ["count", "sum", "mean", "variance"])
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_one_row_loses_what_is_paid_and_no_more(relation: Neighbours, statistic: str, delta: str) -> None:
    more = {} if delta == "0" else {f"x{i}": "mean" for i in range(20)}  # so many that Gaussian noise is better
    query = snugdp.GroupBy(
        by="k", keys=["a", "b"], statistics={"x": statistic}, bounds={"x": (0, 10)}, epsilon=1, delta=delta,
        neighbours=relation,
    )  # fmt: skip
    if more:
        share = Share.gaussian(Budget(1, delta, relation)).part(Fraction(1, 2))
        made = GroupedRelease(
            None,
            GroupMoments(share, Power.COUNT, "count", 1),
            (GroupMoments(share, query._columns[0].power, "column-1", 1),),
        )
        object.__setattr__(query, "_mechanism", made)
    cost = query.plan().cost
    seen = {rows: private(query, rows) for n in (0, 1) for rows in combinations_with_replacement(ROWS, n)}
    pairs = [((), (row,)) for row in ROWS] if relation is ADD else list(product([(row,) for row in ROWS], repeat=2))
    found = [lost(seen[one], seen[other]) for one, other in pairs]
    epsilon, square = max(e for e, _ in found), max(s for _, s in found)
    assert epsilon <= cost.epsilon
    assert square <= cost.mu_squared
    assert (
        epsilon > Fraction(9, 10) * cost.epsilon or square > Fraction(64, 100) * cost.mu_squared
    )  # less noise is seen


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("power", list(Power))
def test_the_moves_of_all_cells(power: Power, pure: bool) -> None:
    """Lemma 1 on many cells, with q rounded down as it is: one cell, and two cells of one key."""
    share = Share.pure(Budget(1)) if pure else Share(Fraction(0), Fraction(1), ADD)
    noise = GroupMoments(share, power, "column-1", 1)
    rng = np.random.default_rng(1)
    t = np.unique(
        np.concatenate([np.linspace(-UNIT, UNIT, 301), rng.integers(-UNIT, UNIT, 200), [1 - UNIT, -1, 0, 1]]).astype(
            np.int64
        )
    )
    cells = np.stack([np.ones_like(t), t, (t * t) >> BITS])
    rows = np.array(noise.basis.rows, dtype=np.int64)
    values = (rows @ cells).astype(np.float64)
    scales = np.array([float(law.scale if isinstance(law, DiscreteLaplace) else law.sigma) for law in noise.laws])
    sizes = np.abs(values) / scales[:, None]
    alone = sizes.sum(axis=0) if pure else (sizes**2).sum(axis=0)
    assert 0.99 < alone.max() <= 1 + 1e-9
    if pure and power > Power.TOTAL:
        assert values.min() >= 0
    apart = np.abs(values[:, :, None] - values[:, None, :]) / scales[:, None, None]
    both = apart.sum(axis=0) if pure else (apart**2).sum(axis=0)
    most = 2 if pure else {Power.COUNT: 2, Power.TOTAL: 4, Power.MEAN: 3, Power.VARIANCE: 3}[power]
    assert both.max() <= most + 1e-9
    back = np.array(noise.basis.back) @ (values / noise.basis.unit)
    wanted = [np.ones_like(t), t / UNIT, (t / UNIT) ** 2]
    kept = {Power.COUNT: (0,), Power.TOTAL: (1,), Power.MEAN: (0, 1), Power.VARIANCE: (0, 1, 2)}[power]
    assert all(np.allclose(back[place], wanted[place], atol=1e-8) for place in kept)


@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
@pytest.mark.parametrize("powers", [(), (Power.MEAN,), (Power.VARIANCE,) * 12])
@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("keys", [1, 4])
def test_every_plan_fits_its_budget(relation: Neighbours, powers: tuple[Power, ...], listed: bool, keys: int) -> None:
    budget = Budget(1, "1e-6", relation)
    made = GroupedRelease.of(budget, Asked(powers), listed=listed, keys=keys, key_share=Fraction(1, 2))
    steps = made.steps(tuple(f"x{place}" for place in range(len(powers))))
    cost = sum((step.cost for step in steps[1:]), steps[0].cost)
    assert cost.fits(budget)
    assert not (cost + Cost(epsilon="0.1", neighbours=relation)).fits(budget)
    assert (made.selection is None) == listed


def rank_laws(point: RankDraw, rows: Any) -> list[Any]:
    """The exact laws of the draws of two keys."""
    found = []
    for key in ("a", "b"):
        cells = np.array([cell for one, cell in rows if one == key and cell is not None], dtype=np.int64)
        first, count, level, weight = point.groups(cells).arrays
        heavy = np.repeat(2.0**weight * np.exp(-float(point.rate) * level), count)
        places = np.concatenate([np.arange(f, f + c) for f, c in zip(first, count, strict=True)])
        found.append(np.bincount(places, heavy) / heavy.sum())
    return found


def rank_pairs(relation: Neighbours, cells: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """All neighbours of tables of up to three rows with two keys and a few cells, missing ones among them."""
    rows = [(key, cell) for key in ("a", "b") for cell in (*cells, None)]
    for rest in [(), *((row,) for row in rows), *combinations_with_replacement(rows, 2)]:
        more = [(*rest, row) for row in rows]
        yield from ((rest, other) for other in more) if relation is ADD else combinations(more, 2)


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_pure_quantiles_of_every_key_lose_what_is_paid_and_no_more(relation: Neighbours) -> None:
    top = 3000
    point = GroupRanks(Share.pure(Budget(1, 0, relation)), Fraction(1, 2), Grid(0, 0, top), "rank-1").point
    worst = 0.0
    for pair in rank_pairs(relation, (0, top - 1, top)):
        losses = [np.log(p / q) for p, q in zip(*(rank_laws(point, rows) for rows in pair), strict=True)]
        worst = max(worst, sum(loss.max() for loss in losses), -sum(loss.min() for loss in losses))
    assert 0.8 < worst <= 1 + 1e-12


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("relation", list(Neighbours), ids=str)
def test_gaussian_quantiles_of_every_key_stay_below_their_curve(relation: Neighbours) -> None:
    share, nearest = Share(Fraction(0), Fraction(1, 4), relation), 0.0
    point = GroupRanks(share, Fraction(1, 2), Grid(0, 0, 60), "rank-1").point
    curve = {}
    for alpha in (0.2, 0.6, 1.0, 1.2, 2.0):
        ends = 0.25 - math.log(alpha) / 0.5, -0.25 - math.log(alpha) / 0.5
        curve[alpha] = stats.norm.cdf(ends[0]) - alpha * stats.norm.cdf(ends[1])
    for pair in rank_pairs(relation, (0, 30, 60)):
        p, q = (np.outer(*rank_laws(point, rows)).ravel() for rows in pair)
        for alpha, gauss in curve.items():
            found = max(np.maximum(p - alpha * q, 0).sum(), np.maximum(q - alpha * p, 0).sum())
            assert found <= gauss + 1e-12
            nearest = max(nearest, float(found / gauss)) if alpha == 1.0 else nearest
    assert nearest > (0.8 if relation is ADD else 0.6)


def test_quantiles_share_the_budget() -> None:
    ranks = (AskedRank("x", Fraction(1, 2), Grid(0, 0, 100)),) * 3
    for listed in (True, False):
        made = GroupedRelease.of(
            Budget(1, "1e-6"), Asked((Power.MEAN,), ranks), listed=listed, keys=1, key_share=Fraction(1, 2)
        )
        steps = made.steps(("x",), ("m", "n", "o"))
        assert sum((step.cost for step in steps[1:]), steps[0].cost).fits(Budget(1, "1e-6"))
        assert [step.id for step in steps][-3:] == ["rank-1", "rank-2", "rank-3"]


def test_gaussian_noise_where_it_is_better() -> None:
    def law(columns: int) -> type:
        powers = (Power.MEAN,) * columns
        made = GroupedRelease.of(Budget(1, "1e-6"), Asked(powers), listed=True, keys=1, key_share=Fraction(1, 2))
        return type(made.columns[0].laws[0])

    assert [law(columns) for columns in (1, 5, 30)] == [DiscreteLaplace, DiscreteLaplace, Gaussian]
