"""Quantiles of persons whose rows have weights: exact laws over all small tables."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.mechanisms.order_statistics.rank_draw import BaseMeasure, Points, RankDraw, RankTarget
from snugdp.mechanisms.order_statistics.several import Halving, SeveralQuantiles, halvings
from snugdp.noise import Simulation
from snugdp.propose.share import Share
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.counts.value_counts import WeightedCells
from snugdp.tables.persons.totals import Totals
from tests.effort import often, repeated, sampled

FULL = 12
CONTENTS = ((), (3,), (0, 3), (1, 1, 2), (0, 0, 0), (3, 3, 3, 3))  # the cells of a person
POINTS = Points(0, 3, BaseMeasure.UNIFORM)


def cells(persons: tuple[tuple[int, ...], ...], most: int) -> WeightedCells:
    entries = [(who, cell, times) for who, some in enumerate(persons) for cell, times in Counter(some).items()]
    who, cell, times = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    return Totals(who, cell, (times,), np.zeros(len(persons), dtype=bool)).weighted(FULL, most, 0)


def law(draw: RankDraw, table: WeightedCells) -> np.ndarray:
    """The exact probabilities of the points."""
    groups = draw.groups(table).whole().nonempty()
    logs = np.full(4, -np.inf)
    for first, count, level, weight in zip(*(part.tolist() for part in groups.arrays), strict=True):
        for place in range(first, first + count):
            logs[place] = math.log(2.0**weight) - float(draw.rate) * level
    found: np.ndarray = logs - np.logaddexp.reduce(logs)
    return found


@sampled(9)
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 4), Fraction(2, 3)])
def test_no_person_moves_a_law_farther_than_is_paid(q: Fraction, most: int) -> None:
    draw = RankDraw(RankTarget.quantile(q), POINTS, Fraction(1), Neighbours.ADD_REMOVE, FULL, most)
    worst = 0.0
    for persons in itertools.combinations_with_replacement(CONTENTS, 3):
        laws = [law(draw, cells((*persons, some), most)) for some in CONTENTS]
        worst = max(worst, *(np.ptp(each - laws[0]) for each in laws[1:]))
        assert max(np.abs(each - laws[0]).max() for each in laws[1:]) <= 1 + 1e-9
    assert 0.8 <= worst <= 1 + 1e-9


def test_weights_of_a_person_add_up_to_the_cap_at_most() -> None:
    for most, some in itertools.product((1, 2, 5), CONTENTS[1:]):
        found = cells((some,), most)
        assert found.weights.sum() <= FULL * min(most, len(some))
        assert found.weights.sum() >= FULL * min(most, len(some)) - len(some)


def test_each_person_counts_once_with_all_rows() -> None:
    """Of one person with many small rows and three with one large row, the median is large."""
    table = cells(((0,) * 12, (3,), (3,), (3,)), 1)
    assert table.counts().counts.tolist() == [FULL, 3 * FULL]
    draw = RankDraw(RankTarget.quantile(Fraction(1, 2)), POINTS, Fraction(20), Neighbours.ADD_REMOVE, FULL, 1)
    assert np.argmax(law(draw, table)) == 3


def test_several_quantiles_are_drawn_from_weights_and_only_for_pure_shares() -> None:
    quartiles = tuple(Fraction(k, 4) for k in (1, 2, 3))
    share = Share.pure(Budget(60))
    one = SeveralQuantiles(quartiles, Points(0, 1000), share, 1 << 20, 1)
    values = np.repeat(np.arange(0, 1000, 5), 3)
    table = WeightedCells(values, np.full(len(values), (1 << 20) // 3))
    found = one.draw(Secret(table), Simulation(3))
    assert np.abs(np.array(found) - [250, 500, 750]).max() < 40
    half = SeveralQuantiles(quartiles, Points(0, 9), Share.pure(Budget(1, 0, "replace")), 8, 1)
    assert half.loss_range * 2 == SeveralQuantiles(quartiles, Points(0, 9), Share.pure(Budget(1)), 8, 1).loss_range
    with pytest.raises(ValueError, match="pure"):
        SeveralQuantiles(quartiles, Points(0, 9), Share.gaussian(Budget(1, 1e-6)), 8, 1)


def joint_law(made: SeveralQuantiles, table: WeightedCells) -> dict[tuple[int, ...], float]:
    """The exact logarithms of the probabilities of three quantiles, given the random digits of all entries."""
    middle, first, last = halvings(made.quantiles)

    def one(halving: Halving, some: np.ndarray, points: Points) -> dict[int, float]:
        draw = made._draw(halving, points)
        groups = draw.groups(table.chosen(some)).whole().nonempty()
        logs = {
            place: weight * math.log(2) - float(draw.rate) * level
            for first, count, level, weight in zip(*(part.tolist() for part in groups.arrays), strict=True)
            for place in range(first, first + count)
        }
        total = float(np.logaddexp.reduce(list(logs.values())))
        return {place: log - total for place, log in logs.items()}

    found: dict[tuple[int, ...], float] = {}
    for point, log in one(middle, np.ones(len(table.cells), dtype=bool), made.points).items():
        below = one(first, table.cells < point, made.points.up_to(point))
        above = one(last, table.cells >= point, made.points.from_on(point))
        found |= {(x, point, y): log + p + q for x, p in below.items() for y, q in above.items()}
    return found


@repeated
def test_no_person_moves_three_quantiles_farther_than_is_paid() -> None:
    """Digits are independent of the rows, so they are fixed here: entries lie anywhere on the fine grid."""
    made = SeveralQuantiles(
        tuple(Fraction(k, 4) for k in (1, 2, 3)), Points(0, 5, BaseMeasure.UNIFORM), Share.pure(Budget(1)), FULL, 1
    )
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(often(20, 80, 400)):
        others, parts = int(rng.integers(0, 7)), int(rng.integers(1, 4))
        own = np.diff([0, *sorted(rng.choice(np.arange(1, FULL), parts - 1, replace=False)), FULL])
        cell, weight = rng.integers(0, 6, others + parts), np.concatenate([rng.integers(1, FULL, others), own])
        laws = [joint_law(made, WeightedCells(cell[:some], weight[:some])) for some in (others, others + parts)]
        assert laws[0].keys() == laws[1].keys()
        worst = max(worst, *(abs(laws[0][key] - laws[1][key]) for key in laws[0]))
    assert 0.3 < worst <= 1 + 1e-9
