"""An interval for a quantile: what it costs whatever was drawn before, and whether it covers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Budget, Cost, Simulation
from snugdp.mechanisms.order_statistics.interval import QuantileIntervalDraw, rank_offset, rows_of
from snugdp.mechanisms.order_statistics.rank_draw import Points, levels_of
from snugdp.propose.share import Share
from snugdp.tables.passes.counts.value_counts import ValueCounts
from tests.effort import often, repeated

ENDS = (0, 6)


def made(q: str = "1/2", relation: str = "add_remove", epsilon: float = 1) -> QuantileIntervalDraw:
    return QuantileIntervalDraw(Fraction(q), Points(*ENDS), Share.pure(Budget(epsilon, 0, relation)))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_every_end_has_the_range_of_its_part_whatever_the_offset_is(relation: str) -> None:
    """All tables of up to three rows, all neighbours, and offsets from none to more than there are rows."""
    part = float(made().share.epsilon * Fraction(9, 20))
    tables = [[], [0], [3], [6], [1, 1], [0, 6], [2, 5], [1, 3, 6], [4, 4, 4]]
    for q in ("1/2", "9/10", "1/20"):
        worst = 0.0
        for shift in (-70, -3, 0, 5, 200):
            draw = made(q, relation)._shifted(shift)
            for rows in tables:
                for more in range(7):
                    other = [*rows[:-1], more] if relation == "replace" and rows else [*rows, more]
                    one, two = (_log_law(draw, each) for each in (rows, other))
                    if relation == "replace" and not rows:
                        continue
                    worst = max(worst, float(np.abs(one - two).max()))
        assert worst <= part + 1e-12
        assert worst > 0.3 * part


def _log_law(draw: Any, rows: list[int]) -> Any:
    _, count, level = levels_of(np.array(rows, dtype=np.int64), draw.target, ENDS)
    weights = -float(draw.rate) * np.repeat(level, count).astype(float)
    return weights - np.log(np.exp(weights).sum())


def test_the_parts_add_up_to_the_budget() -> None:
    for relation in ("add_remove", "replace"):
        drawn = made(relation=relation)
        assert sum((step.cost for step in drawn.steps()), Cost(neighbours=relation)) == drawn.share.cost
        assert [step.cost.epsilon for step in drawn.steps()] == [Fraction(1, 10), Fraction(9, 10)]
        assert drawn.count.moves == (Fraction(1),)
        ends = [drawn._shifted(by) for by in (-9, 9)]
        assert sum(end.loss_range for end in ends) == drawn.steps()[1].cost.epsilon
    with pytest.raises(ValueError, match="pure"):
        QuantileIntervalDraw(Fraction(1, 2), Points(*ENDS), Share.gaussian(Budget(1, 1e-6)))


def test_rows_are_counted_in_every_form_and_few_say_nothing() -> None:
    cells = np.array([3, 3, 5], dtype=np.int64)
    assert rows_of(cells) == rows_of(ValueCounts.of(cells)) == 3
    assert rank_offset(0.5, -4.0, 2.0).lower_open
    assert rank_offset(0.99, 500, 2.0).upper_open
    assert not rank_offset(0.99, 500, 2.0).lower_open
    few = snugdp.quantile_interval([5.0] * 3, bounds=(0, 9), epsilon=1, noise=Simulation(1)).value
    assert few == (0.0, 9.0)
    none = snugdp.quantile_interval([5.0] * 3, epsilon=1, noise=Simulation(1))
    assert none.refused
    tiny = snugdp.quantile_interval([5.0] * 3, bounds=(0, 9), epsilon=1e-14, noise=Simulation(1)).value
    assert tiny is not None, "offsets stay numbers of 64 bits"


@repeated
def test_intervals_cover_the_quantile_of_the_population() -> None:
    runs = often(60, 150, 400)
    for q in (0.5, 0.9):
        query = snugdp.QuantileInterval(q=q, bounds=(0, 1), epsilon=1)
        covered, widths = 0, []
        for seed in range(runs):
            found = query.release(np.random.default_rng(seed).random(1000), noise=Simulation(seed)).value
            assert found is not None
            covered += found[0] <= q <= found[1]
            widths.append(found[1] - found[0])
        assert covered >= {60: 52, 150: 134, 400: 364}[runs]
        assert np.median(widths) < 1.5 * 2 * 1.96 * math.sqrt(q * (1 - q) / 1000)


def test_wrong_uses_are_told_first() -> None:
    for given, words in (({"q": 1}, "maximum"), ({"q": 2}, "between 0 and 1"), ({"person": "a", "max_rows": 2}, "one")):
        asked: Any = {"bounds": (0, 1), "epsilon": 1, "column": "x", **given}
        with pytest.raises(ValueError, match=words):
            snugdp.QuantileInterval(**asked)
