"""The proposal of the paper: a test by smooth sensitivity, made honest. The test by distance is nearly always better.

It searches several noises and orders: a plan takes some seconds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from snugdp.core.guarantee import Cost
from snugdp.core.unit import Unit
from snugdp.mechanisms.teachers.labels import NoisyLabels
from snugdp.mechanisms.teachers.smooth_test import THEOREM, SmoothTest, smooth_plan
from snugdp.pate.proposals import LabelRequest, Proposal, compared, expected, numbers, plain, released, title
from snugdp.propose.forecast import Forecast, Note, PassChance
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise

_HALVINGS = 4
_LEAST = Fraction(2)


def smooth(request: LabelRequest) -> Proposal:
    """Less noise behind the test by smooth sensitivity, unless plain noise costs no more."""
    if request.confidence is not None:
        raise ValueError('the smooth test knows no threshold: use test="distance", or leave threshold out')
    largest = request.least_plain
    assert largest is not None
    if request.sigma is not None:
        if request.sigma >= largest:
            return plain(request, Note("no-test-needed"))
        found = _within(request, request.sigma)
        if found is None:
            raise ValueError(
                "at this sigma the smooth test alone costs more than the budget: give a larger sigma or budget, or use "
                'test="distance"'
            )
        return _proposal(request, request.sigma, *found)
    sigma = _least_sigma(request, largest)
    found = None if sigma is None else _within(request, sigma)
    if sigma is None or found is None:
        return plain(request, Note("plain-is-cheaper"))
    return _proposal(request, sigma, *found)


def _least_sigma(request: LabelRequest, largest: Fraction) -> Fraction | None:
    """The least noise with which votes as believed would pass in 9 of 10 cases, found to a few percent."""

    def passes(sigma: Fraction) -> bool:
        return _test(request, sigma).epsilon <= request.budget.epsilon

    high = largest * Fraction(99, 100)
    if not passes(high):
        return None
    low = _LEAST
    for _ in range(_HALVINGS):
        middle = Fraction(f"{math.sqrt(float(low) * float(high)):.6g}")
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _test(request: LabelRequest, sigma: Fraction) -> SmoothTest:
    return smooth_plan(
        request.belief.votes(),
        sigma=sigma,
        delta=request.budget.delta,
        teachers=request.size.teachers,
        neighbours=request.budget.neighbours,
    )


def _within(request: LabelRequest, sigma: Fraction) -> tuple[SmoothTest, bool] | None:
    """The test with the limit that the budget leaves, and whether the belief needs no more; None if none is left."""
    test = _test(request, sigma)
    limit = Fraction(f"{float(test.limit) + float(request.budget.epsilon) - test.epsilon:.9f}")
    while limit > 0 and (found := replace(test, limit=limit)).epsilon > request.budget.epsilon:
        limit -= Fraction(1, 10**9)
    return (found, limit >= test.limit * Fraction(999, 1000)) if limit > 0 else None


def _proposal(request: LabelRequest, sigma: Fraction, test: SmoothTest, likely: bool) -> Proposal:
    budget = request.budget
    steps = (
        Step(
            "test",
            StepKind.TEST,
            StepNoise("renyi-loss", "gaussian", params={"order": float(test.order)}),
            Cost(neighbours=budget.neighbours),
        ),
        released(request, sigma, budget.cost),
    )
    hope = PassChance(0.9, "votes-as-believed", below=not likely)
    forecast = Forecast(chances=(hope,), notes=(expected(request, sigma), *compared(request)))
    proposal = {**numbers(request, sigma), "order": float(test.order), "beta": float(test.beta)}
    plan = Plan(title(request), THEOREM, steps, proposal, forecast, budget, Unit.TEACHER)
    return Proposal(plan, NoisyLabels(sigma), test)
