"""The choice of a clipping range: exact laws over all small tables, in both relations; and what it is good for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget
from snugdp.mechanisms.statistics import clipping
from snugdp.mechanisms.statistics.clipping import (
    ClipChoice,
    ClippedMoments,
    ClippedTotal,
    ClipRange,
    candidates,
    centre_of,
    octaves_for,
    rows_needed,
)
from snugdp.noise import Exact, Simulation
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.grid import Grid
from snugdp.tables.passes.columns.statistics import ALONE, CappedSums, StatisticsPass
from tests.effort import sampled
from tests.mechanisms.statistics.universes import SHARES, name

CAPS = (1, 2, 4, 7)
Table = tuple[int, ...]


def above(rows: Table, caps: tuple[int, ...] = CAPS) -> list[int]:
    return [sum(row > cap for row in rows) for cap in caps]


def log_probabilities(choice: ClipChoice, rows: Table) -> np.ndarray:
    scores = np.array([float(score) for score in choice.scores(above(rows))])
    logs: np.ndarray = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
    return logs


def pairs(relation: str) -> Iterator[tuple[Table, Table]]:
    values = (0, 2, 3, 5, 7)
    for size in range(4):
        for rows in combinations_with_replacement(values, size):
            if relation == "add_remove":
                yield from ((rows, (*rows, new)) for new in values)
            elif rows:
                yield from ((rows, (new, *rows[1:])) for new in values)
                yield from ((rows, (*rows[:-1], new)) for new in values)


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_the_range_is_what_is_charged(share: Share) -> None:
    choice = ClipChoice(share, len(CAPS))
    ranges = [
        np.ptp(log_probabilities(choice, one) - log_probabilities(choice, other))
        for one, other in pairs(share.neighbours.value)
    ]
    e = float(choice.range)
    assert e * (1 - 1e-9) <= max(ranges) <= e * (1 + 1e-9)
    if share.is_pure:
        assert choice.range == share.epsilon
    assert max(ranges) / 0.8 > e


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("share", [one for one in SHARES if not one.is_pure], ids=name)
def test_a_gaussian_share_dominates_the_draw(share: Share) -> None:
    """Hockey-stick divergences of the exact laws against those of the Gaussian pair."""
    choice = ClipChoice(share, len(CAPS))
    mu = math.sqrt(share.mu_squared)
    for one, other in pairs(share.neighbours.value):
        p, q = (np.exp(log_probabilities(choice, rows)) for rows in (one, other))
        for level in (-0.3, -0.05, 0.0, 0.05, 0.3):
            for a, b in ((p, q), (q, p)):
                lost = np.maximum(a - math.exp(level) * b, 0).sum()
                assert lost <= gaussian.delta(mu, level) + 1e-12


@pytest.mark.slow
def test_the_draw_has_the_law_of_its_scores() -> None:
    choice, rows = ClipChoice(Share.pure(Budget(1)), len(CAPS)), (0, 2, 3, 5, 7)
    want = np.exp(log_probabilities(choice, rows))
    for noise, draws in ((Simulation(2), 6000), (Exact(), 300)):
        drawn = [choice.draw(Secret(above(rows)), noise) for _ in range(draws)]
        found = np.bincount(drawn, minlength=len(CAPS)) / draws
        assert np.all(np.abs(found - want) < 6 * np.sqrt(want / draws) + 1e-3)


def test_candidates_reach_the_bound_itself() -> None:
    for bounds in ((0, 100), (-5, 100), (-100, -1), (20, 30)):
        grid = Grid.across(bounds, 40)
        caps = candidates(grid, 12)
        centre = centre_of(grid)
        assert caps[-1] == max(grid.upper - centre, centre - grid.lower)
        assert list(caps) == sorted(set(caps))
        assert len(caps) == 49
        assert grid.lower <= centre <= grid.upper
    assert candidates(Grid(0, 0, 3), 12) == (1, 2, 3)


def test_few_rows_ask_for_few_octaves() -> None:
    share = Share.pure(Budget(1))
    assert octaves_for(share, -50) == octaves_for(share, 10) == 0
    assert octaves_for(share, rows_needed(share, 5)) >= 5
    assert octaves_for(share, 10**9) == clipping.MAX_OCTAVES


def test_loose_bounds_cost_little() -> None:
    """Expected squared errors from exact probabilities: within 2.5 of the best cap in hindsight, ten thousandfold."""
    rng = np.random.default_rng(11)
    for column, upper in ((rng.gamma(1.5, 100, 6000), 3000.0), (rng.normal(50, 12, 6000).clip(0), 100.0)):
        for loose in (1, 10, 1000):
            share = Share.pure(Budget(1))
            part = clipping.clip_part(share)
            grid = Grid.across((0, upper * loose), 40)
            cells = grid.integers(column, 0)
            caps = candidates(grid, 12)
            choice = ClipChoice(share.part(part), len(caps))
            counts = len(cells) - np.searchsorted(np.sort(cells), caps, side="right")
            scores = np.array([float(score) for score in choice.scores(counts.tolist())])
            chance = np.exp(scores - scores.max())
            chance /= chance.sum()
            sizes = np.array(caps) * float(grid.unit)
            clipped = np.minimum.outer(column, sizes).mean(axis=0)
            noise = 4 * ((sizes / 2) ** 2 + (clipped - sizes / 2) ** 2) / len(column) ** 2
            error = np.sqrt(chance @ ((clipped - column.mean()) ** 2 + noise / float(1 - part) ** 2))
            best = np.sqrt(((clipped - column.mean()) ** 2 + noise).min())
            assert error < 2.5 * best
            assert loose == 1 or error < np.sqrt(noise[-1]) / 2


def test_the_whole_range_is_spent_on_scores() -> None:
    choice = ClipChoice(Share.pure(Budget("1/2")), 3)
    assert choice.scores([7, 2, 0]) == [Fraction(-7, 2), Fraction(-7, 4), Fraction(-3, 2)]


def measured(values: np.ndarray, bounds: tuple[float, float], degree: int = 1) -> tuple[CappedSums, list[int]]:
    grid = Grid.across(bounds, 40 if degree == 1 else 24)
    measure = CappedSums(ALONE, grid, centre_of(grid), candidates(grid), degree)
    return measure, StatisticsPass((measure,)).alone(values)[0]


@pytest.mark.parametrize("share", SHARES, ids=name)
@pytest.mark.parametrize("octaves", [None, 0, 5])
def test_the_steps_cost_the_share(share: Share, octaves: int | None) -> None:
    measure, _ = measured(np.zeros(1), (-5, 100))
    for made in (ClippedMoments(ClipRange(share, measure, octaves)), ClippedTotal(ClipRange(share, measure, octaves))):
        steps = made.steps()
        assert len(steps) == (2 if octaves is None else 1)
        assert sum((step.cost for step in steps[1:]), steps[0].cost) == share.cost


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_what_is_drawn_on_the_way_is_within_the_share(share: Share) -> None:
    """Count, clip and release of one walk, from the laws that they ask for: together at most the share."""
    rng = np.random.default_rng(3)
    for rows in (30, 3000):
        measure, sums = measured(rng.exponential(5, rows), (0, 1000))
        for clip in (ClipRange(share, measure), ClipRange(share, measure, 6)):
            found = clip.draw(Secret(sums), Simulation(1))
            spent = found.left.cost
            if clip.octaves is None:
                spent += share.part(Fraction(1, 20)).cost
            if found.left != clip.rest:
                spent += clip.rest.part(clipping.clip_part(clip.rest)).cost
            assert spent == share.cost


def test_few_rows_are_not_clipped_and_many_are() -> None:
    rng = np.random.default_rng(4)
    share = Share.pure(Budget(1))
    few, many = (rng.normal(50, 10, rows) for rows in (60, 20_000))
    for values, least, most in ((few, 90, 10_001), (many, 70, 400)):
        measure, sums = measured(values, (0, 10_000))
        for seed in range(60):
            found = ClipRange(share, measure).draw(Secret(sums), Simulation(seed))
            assert least < found.high * float(measure.grid.unit) < most


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_means_and_sums_of_both_signs(share: Share) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(-3, 4, 20_000)
    measure, sums = measured(values, (-1000, 800))
    unit = float(measure.grid.unit)
    made = ClippedMoments(ClipRange(share, measure))
    clip, drawn = made.draw(Secret(sums), Simulation(1))
    mean = (clip.low + made.moments(clip, drawn).mean().value * (clip.high - clip.low)) * unit
    assert mean == pytest.approx(-3, abs=0.2)
    clip, total = ClippedTotal(ClipRange(share, measure)).draw(Secret(sums), Simulation(2))
    assert total * unit == pytest.approx(values.sum(), abs=2000)
    assert max(-clip.low, clip.high) * unit < 100


@pytest.mark.parametrize("share", SHARES, ids=name)
def test_rows_beyond_the_drawn_candidate_are_bounded(share: Share) -> None:
    """Lemma 1 by its exact law: a candidate with more rows beyond it than it allows is hardly ever drawn."""
    choice = ClipChoice(share, 33)
    for place in range(32):
        most = choice.rows_beyond(place)
        for extra in (1, most):
            beyond = [10**6] * place + [most + extra] + [0] * (32 - place)
            beyond[place + 1 : 32] = [most + extra] * (31 - place)  # all rows are far out: only the last is right
            scores = np.array([float(score) for score in choice.scores(beyond)])
            chances = np.exp(scores - scores.max())
            assert chances[place] / chances.sum() <= 1 / (1000 * 33) * (1 + 1e-9)
    assert choice.rows_beyond(32) == 0


def test_a_heap_at_the_centre_tells_nothing_of_the_other_rows() -> None:
    """Of 2,000 rows 1,950 are 0: too few are left to find a clip, and it stays near the bounds."""
    share, grid = Share.pure(Budget(1)), Grid.across((0, 10**5), 36)
    measure = CappedSums(ALONE, grid, 0, (0, *candidates(grid)))
    rng = np.random.default_rng(8)
    for zeros, far in ((1950, True), (0, False)):
        rows = np.concatenate([np.zeros(zeros), rng.lognormal(5, 1, 2000 - zeros)])
        (sums,) = StatisticsPass((measure,)).alone(rows)
        found = [ClipRange(share, measure).draw(Secret(sums), Simulation(seed)) for seed in range(20)]
        assert all((clip.high > grid.upper / 10) == far for clip in found)
        assert all((clip.beyond > 0) == (clip.high < grid.upper) for clip in found)


def test_the_cap_at_the_centre_is_no_candidate() -> None:
    grid = Grid.across((0, 1), 20)
    measure = CappedSums(ALONE, grid, 0, (0, *candidates(grid, 2)))
    (sums,) = StatisticsPass((measure,)).alone(np.zeros(5000))
    for seed in range(30):
        found = ClipRange(Share.pure(Budget(4)), measure, 16).draw(Secret(sums), Simulation(seed))
        assert found.high > 0
