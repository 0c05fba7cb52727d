from __future__ import annotations

from fractions import Fraction

import pytest
from tests.effort import sampled

from snugdp.core.guarantee import Budget, Neighbours
from snugdp.propose.share import Share

BUDGETS = [Budget(1, 1e-6), Budget("0.1", 1e-9, "replace")]


@sampled(3)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("make", [Share.pure, Share.gaussian])
def test_parts_cost_what_the_whole_does_and_fit_the_budget(make: type[Share], budget: Budget) -> None:
    whole = make(budget)  # type: ignore[call-arg, arg-type]
    parts = [whole.part(Fraction(k, 6)) for k in (1, 2, 3)]
    together = parts[0].cost + parts[1].cost + parts[2].cost
    assert together == whole.cost
    assert together.fits(budget)
    assert whole.cost.neighbours is budget.neighbours
    assert not whole.part(Fraction(101, 100)).cost.fits(budget)


def test_a_share_has_one_currency() -> None:
    with pytest.raises(ValueError, match="either pure or Gaussian"):
        Share(Fraction(1), Fraction(1), Neighbours.REPLACE)
    with pytest.raises(ValueError, match="greater than 0"):
        Share(Fraction(0), Fraction(0), Neighbours.REPLACE)


def test_gaussian_noise_needs_a_delta() -> None:
    with pytest.raises(ValueError, match="delta > 0"):
        Share.gaussian(Budget(1))
