"""Several quantiles: the exact joint law on small tables against the claimed cost, plans, heaps and order."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from snugdp import Budget, Exact, Simulation
from snugdp.accounting.bounded_range import mu_squared
from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.order_statistics import several
from snugdp.mechanisms.order_statistics.rank_draw import BaseMeasure, Points
from snugdp.mechanisms.order_statistics.several import SeveralQuantiles, halvings
from snugdp.noise import Noise
from snugdp.noise.exact.weighted import masses
from snugdp.noise.recording import Replay, Witness
from snugdp.noise.requests import Request, Scattering, WeightedChoice
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.value_counts import ValueCounts
from tests.effort import sampled
from tests.mechanisms.order_statistics.test_rank_draw import ADD, REPLACE, neighbours, tables

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
TENTHS = tuple(Fraction(k, 10) for k in range(1, 10))
UNIVERSE = 2  # points of the small universe


class Scripted(Noise):
    """Gives the answers of a script, with their probabilities, and the first possible one when the script ends."""

    private = False

    def __init__(self, digits: tuple[int, ...], script: tuple[int, ...]) -> None:
        self.digits, self.script, self.chances = digits, list(script), list[dict[int, float]]()

    def answer(self, request: Request[Any]) -> Any:
        if isinstance(request, Scattering):
            return np.array(self.digits, dtype=np.int64)
        assert isinstance(request, WeightedChoice)
        groups = request.inside().whole()
        mass, _ = masses(groups, request.rate)
        chances: dict[int, float] = defaultdict(float)
        for first, count, one in zip(groups.first.tolist(), groups.count.tolist(), mass.tolist(), strict=True):
            for place in range(first, first + count):
                chances[place] += one / count / mass.sum()
        self.chances.append(chances)
        return self.script[len(self.chances) - 1] if len(self.chances) <= len(self.script) else min(chances)


def outcomes(
    mechanism: SeveralQuantiles, cells: Any, digits: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], float]]:
    """All walks of the mechanism for given random digits: what was drawn, and how likely that is."""
    open_: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while open_:
        script, chance = open_.pop()
        noise = Scripted(digits, script)
        mechanism.draw(Secret(cells), noise)
        if len(noise.chances) == len(script):
            yield script, chance
            continue
        open_ += [((*script, place), chance * p) for place, p in noise.chances[len(script)].items()]


def joint(mechanism: SeveralQuantiles, table: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """The law of all that is drawn, over random digits (of one bit)."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for digits in product((0, 1), repeat=len(table)):
        for drawn, chance in outcomes(mechanism, np.array(table, dtype=np.int64), digits):
            found[drawn] += chance / 2 ** len(table)
    return found


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=["add_remove", "replace"])
def test_joint_law_of_three_quartiles(relation: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is drawn, not only what is shown: within epsilon, and a Gaussian share within its curve."""
    monkeypatch.setattr(several, "_DIGITS", 1)
    budget = Budget(2, 1e-2, relation)
    shares = [Share.pure(budget), Share.gaussian(budget)]
    mechanisms = [SeveralQuantiles(QUARTILES, Points(0, UNIVERSE - 1, BaseMeasure.UNIFORM), share) for share in shares]
    laws = [{table: joint(one, table) for table in tables(3, UNIVERSE)} for one in mechanisms]
    limits = {share: {e: share.cost.delta_at(e) + 1e-12 for e in (0.0, 0.5, 1.5)} for share in shares}
    worst = 0.0
    for table in tables(2, UNIVERSE):
        for other in neighbours(table, relation, UNIVERSE):
            for (share, law), order in product(zip(shares, laws, strict=True), (1, -1)):
                one, two = (law[side] for side in (table, other)[::order])
                if share.is_pure:
                    worst = max(worst, *(abs(math.log(one[at] / two[at])) for at in one))
                for epsilon, limit in limits[share].items():
                    factor = math.exp(epsilon)
                    assert sum(max(one[at] - factor * two[at], 0.0) for at in one) <= limit
    assert worst <= 2 + 1e-9
    assert worst > 0.5


def test_plan_of_halvings() -> None:
    found = [(one.place, one.depth, one.q) for one in halvings(TENTHS)]
    assert found[:3] == [(4, 1, Fraction(1, 2)), (1, 2, Fraction(2, 5)), (0, 3, Fraction(1, 2))]
    assert sorted(index for index, _, _ in found) == list(range(9))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("m", [1, 2, 3, 9, 99])
def test_steps_cost_what_the_share_is(m: int, relation: Neighbours) -> None:
    quantiles = tuple(Fraction(k, m + 1) for k in range(1, m + 1))
    budget = Budget(1, 1e-6, relation)
    for share in (Share.pure(budget), Share.gaussian(budget)):
        one = SeveralQuantiles(quantiles, Points(0, 1000), share)
        cost = sum((step.cost for step in one.steps()[1:]), one.steps()[0].cost)
        assert cost.fits(budget)
        assert sum(step.noise.times for step in one.steps()) == m
        assert one.scale > 0


def test_ranges_of_both_relations() -> None:
    """Halved columns: under replace a row may leave one part and enter another, or move inside one."""
    points = Points(0, 9)
    for relation, pure in ((ADD, Fraction(1, 2)), (REPLACE, Fraction(1, 4))):
        budget = Budget(1, 1e-6, relation)
        assert SeveralQuantiles(QUARTILES, points, Share.pure(budget)).loss_range == pure
        share = Share.gaussian(budget)
        e = SeveralQuantiles(QUARTILES, points, share).loss_range
        level = share.mu_squared / 2
        needed = mu_squared(e) if relation is ADD else max(2 * mu_squared(e), mu_squared(2 * e))
        assert level * (1 - Fraction(1, 10**12)) < needed < level * (1 + Fraction(1, 10**12))


def test_the_currency_that_leaves_more() -> None:
    points = Points(0, 10**6)
    few = SeveralQuantiles.within(Budget(1, 1e-6), QUARTILES, points)
    many = SeveralQuantiles.within(Budget(Fraction(1, 10), 1e-2), [Fraction(k, 1000) for k in range(1, 1000)], points)
    assert few.share.is_pure
    assert not many.share.is_pure
    assert SeveralQuantiles.within(Budget(1), TENTHS, points).share.is_pure


@pytest.mark.parametrize("noise", [Exact(), Simulation(1)], ids=["exact", "simulated"])
@pytest.mark.parametrize("as_tally", [False, True])
def test_heaps_are_parted(noise: Noise, as_tally: bool) -> None:
    """Half of all rows at one value: every quantile inside the heap is that value, and those outside are right."""
    cells = np.concatenate([np.arange(1000), np.full(2000, 1000), 1001 + np.arange(1000)])
    np.random.default_rng(0).shuffle(cells)
    given = ValueCounts(*np.unique(cells, return_counts=True)) if as_tally else cells
    one = SeveralQuantiles(TENTHS, Points(0, 2001), Share.pure(Budget(40)))
    drawn = one.draw(Secret(given), noise)
    assert list(drawn) == sorted(drawn)
    assert drawn[2:7] == (1000,) * 5
    assert np.abs(np.array(drawn[:2]) - [400, 800]).max() < 8
    assert np.abs(np.array(drawn[7:]) - [1201, 1601]).max() < 8


@pytest.mark.parametrize("ends", [(0, 1 << 52), (-(1 << 52), 1 << 52), (-(1 << 52), -(1 << 51)), (3, 1 << 40)])
def test_wide_grids_lose_their_last_digits_alone(ends: tuple[int, int]) -> None:
    """Cells and digits together stay within 64 bits: what is drawn is a cell, up to the last few digits."""
    middle = sum(ends) // 2 >> 12 << 12
    one = SeveralQuantiles(QUARTILES, Points(*ends), Share.pure(Budget(100)))
    drawn = one.draw(Secret(np.full(5000, middle)), Exact())
    assert all(middle - 512 < point <= middle for point in drawn)


def test_few_rows_and_none() -> None:
    one = SeveralQuantiles(QUARTILES, Points(-5, 5), Share.pure(Budget(1)))
    for cells in (np.empty(0, dtype=np.int64), np.array([3])):
        drawn = one.draw(Secret(cells), Exact())
        assert len(drawn) == 3
        assert all(-5 <= point <= 5 for point in drawn)


def test_replays_on_a_neighbour() -> None:
    cells, one = np.arange(200), SeveralQuantiles(QUARTILES, Points(0, 300), Share.pure(Budget(1)))
    witness = Witness(3)
    drawn = one.draw(Secret(cells), witness)
    replay = Replay(witness.transcript())
    assert one.draw(Secret(cells[:-1]), replay) == drawn
    assert replay.finished


@pytest.mark.parametrize("quantiles", [(), (0,), (Fraction(1, 2), Fraction(1, 2)), (Fraction(3, 4), Fraction(1, 4))])
def test_quantiles_out_of_order_are_refused(quantiles: tuple[Fraction, ...]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        SeveralQuantiles(quantiles, Points(0, 9), Share.pure(Budget(1)))
