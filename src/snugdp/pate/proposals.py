"""The proposals for labels: plain noise, or less noise behind a test. Everything here is public.

The test by distance is nearly always better than the paper's, by smooth sensitivity and made honest here. A plan with
the latter searches several noises and orders, and takes some seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Unit
from snugdp.mechanisms.teachers import labels, smooth_test
from snugdp.mechanisms.teachers.ball import Integers
from snugdp.mechanisms.teachers.confident import confident_losses
from snugdp.mechanisms.teachers.distance_test import (
    THEOREM,
    SharpDistance,
    confident_profile,
    labelling_for,
    labels_profile,
)
from snugdp.mechanisms.teachers.labels import ConfidentLabels, NoisyLabels, gaussian_cost, sigma_for
from snugdp.mechanisms.teachers.pair import LEAST_SIGMA
from snugdp.mechanisms.teachers.planning import (
    Search,
    Tested,
    VoteBelief,
    best_sigmas,
    confident_search,
    doubted,
    plain_search,
)
from snugdp.mechanisms.teachers.smooth_test import SmoothTest, smooth_plan
from snugdp.numerics.printed import printed_up
from snugdp.propose.forecast import Amount, Forecast, Note, PassChance
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.release.spine import PrivateTest
from snugdp.tables.keyed import EqualByKey

_HOPELESS = 0.05  # a chance below which nobody would pay
_HALVINGS = 4
_LEAST_SMOOTH = Fraction(2)
_PARTS = 1000  # of a vote: a sigma that was searched for is rounded to so many


@dataclass(frozen=True)
class Size:
    """How many teachers, queries and classes there are."""

    teachers: int
    queries: int
    classes: int


@dataclass(frozen=True)
class Confidence:
    """Answer only where the largest count reaches ``at`` after noise of deviation ``sigma``."""

    at: Fraction
    sigma: Fraction


@dataclass(frozen=True, eq=False)
class LabelRequest(EqualByKey):
    """What was asked for. Equal requests have equal plans, and their search is made once."""

    budget: Budget
    size: Size
    sigma: Fraction | None
    confidence: Confidence | None
    belief: VoteBelief

    @cached_property
    def _key(self) -> tuple[object, ...]:
        leads, counts, tops = self.belief.ballots.leads, self.belief.ballots.counts, self.belief.tops
        public = (self.budget, self.size, self.sigma, self.confidence, self.belief.assumed)
        return (*public, leads.shape, *(array.tobytes() for array in (leads, counts, tops)))

    @property
    def doubt(self) -> VoteBelief:
        """What to be prepared for, if it costs nothing."""
        return doubted(self.belief)

    @property
    def least_plain(self) -> Fraction | None:
        """The noise that is enough on all votes; None if the threshold alone costs too much for that."""
        try:
            return sigma_for(self.budget, self.size.queries, self.confidence.sigma if self.confidence else None)
        except ValueError:
            if self.confidence is None or not self.budget.delta:
                raise
            return None

    def right(self, sigma: float) -> float:
        """The share of the queries that get the plurality for a label."""
        if self.confidence is None:
            return self.belief.accuracy(sigma)
        answers, right = self.answers(sigma)
        return answers * right / self.size.queries

    def answers(self, sigma: float) -> tuple[float, float]:
        """How many queries are answered, and how many of these answers are right."""
        if self.confidence is None:
            return float(self.size.queries), self.belief.accuracy(sigma)
        return self.belief.answers(sigma, float(self.confidence.at), float(self.confidence.sigma))


@dataclass(frozen=True)
class Proposal:
    """What will be done: a mechanism, the test before it if there is one, and the plan that says so."""

    plan: Plan
    mechanism: NoisyLabels | ConfidentLabels
    test: PrivateTest[Integers] | None


def plain(request: LabelRequest, *notes: Note) -> Proposal:
    """Gaussian noise that is enough on all votes. It never refuses."""
    sure, least = request.confidence, request.least_plain
    sigma = least if request.sigma is None else request.sigma
    if sigma is None or least is None or sigma < least:
        needed = "a larger threshold_sigma" if least is None else f"sigma of at least {printed_up(least)}"
        raise ValueError(
            f'with test="none" this budget needs {needed} for {request.size.queries} queries: give that, leave sigma '
            'out, or propose less noise behind a test with test="distance"'
        )
    cost = gaussian_cost(request.size.queries, sigma, sure.sigma if sure else None, request.budget.neighbours)
    forecast = Forecast(chances=(PassChance(1.0, "always"),), notes=(*notes, expected(request, sigma)))
    proved = labels.CONFIDENT if sure else labels.THEOREM
    steps = (released(request, sigma, cost),)
    plan = Plan(title(request), proved, steps, numbers(request, sigma), forecast, request.budget, Unit.TEACHER)
    return Proposal(plan, _draws(request, sigma), None)


def tested(request: LabelRequest) -> Proposal:
    """Less noise behind the test by distance, unless plain noise promises as much without it."""
    if not 0 < request.budget.delta <= Fraction(1, 2):
        raise ValueError("a test needs 0 < delta <= 1/2, the probability that it fails; 1e-6 is typical")
    largest = request.least_plain
    if request.sigma is not None and request.sigma < LEAST_SIGMA:
        raise ValueError(f"sigma must be at least {LEAST_SIGMA} votes: less noise changes no label, and costs more")
    if request.sigma is not None:
        if largest is not None and request.sigma >= largest:
            return plain(request, Note("no-test-needed"))
        search = _search(request, request.sigma)
        unknown = request.belief.assumed
        found = search.for_nobody() if unknown else search.for_both(request.belief, request.doubt)
        return _behind_test(request, request.sigma, search, found)
    sigma = _best_noise(request)
    if sigma is None:
        return plain(request, Note("plain-is-as-good"))
    search = _search(request, sigma)
    return _behind_test(request, sigma, search, search.for_both(request.belief, request.doubt))


@lru_cache(maxsize=8)  # a plan, and then the release
def _best_noise(request: LabelRequest) -> Fraction | None:
    """The noise behind a test that promises most; None if plain noise promises as much."""

    def value(noise: float) -> float:
        return _search(request, _rounded(noise)).for_belief(request.belief).chance * request.right(noise)

    largest = request.least_plain
    end = float(largest or request.size.teachers)
    near = best_sigmas(value, end, request.right(end) if largest else 0.0, 8 if request.confidence is None else 6)
    if largest is not None and not near:
        return None
    near = near or {end: 0.0}
    return _rounded(max(near, key=lambda noise: _prepared(request, noise)))


def _prepared(request: LabelRequest, noise: float) -> tuple[float, float]:
    """How good a noise is if the belief is too hopeful; of equals, the smaller one needs the smaller lead."""
    chance = _search(request, _rounded(noise)).for_belief(request.doubt).chance
    return round(chance * request.right(noise), 2), -noise


def _behind_test(request: LabelRequest, sigma: Fraction, search: Search, found: Tested) -> Proposal:
    budget, size, sure = request.budget, request.size, request.confidence
    if sure is None:
        profile = labels_profile(labelling_for(sigma, size.queries, budget))
    else:
        profile = confident_profile(confident_losses(sigma, sure.at, sure.sigma, size.teachers))
    test = SharpDistance(profile, found.table, budget, size.teachers)
    lead = search.lead_for(found.table)
    if lead is None and found.chance < _HOPELESS:
        raise ValueError(
            "such a release would be refused whatever the votes, and paid for: give a larger budget, another sigma, "
            'fewer queries or more teachers, or plain noise with test="none"'
        )
    params = {} if lead is None else {"votes": lead, "teachers": size.teachers}
    passing = PassChance(0.9, "plurality-leads-by-far" if lead is None else "plurality-leads", params)
    likely = (
        () if request.belief.assumed and request.sigma is not None else (PassChance(found.chance, believed(request)),)
    )
    steps = (
        Step("test", StepKind.TEST, StepNoise("teachers-to-change"), Cost(neighbours=budget.neighbours)),
        released(request, sigma, test.cost),
    )
    forecast = Forecast(chances=(*likely, passing), notes=(expected(request, sigma), *compared(request)))
    plan = Plan(title(request), THEOREM, steps, numbers(request, sigma), forecast, budget, Unit.TEACHER)
    return Proposal(plan, _draws(request, sigma), test)


def smooth(request: LabelRequest) -> Proposal:
    """Less noise behind the test by smooth sensitivity, unless plain noise costs no more."""
    if request.confidence is not None:
        raise ValueError('the smooth test does not support a threshold: use test="distance", or leave threshold out')
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
        return _behind_smooth_test(request, request.sigma, *found)
    sigma = _least_sigma(request, largest)
    found = None if sigma is None else _within(request, sigma)
    if sigma is None or found is None:
        return plain(request, Note("plain-is-cheaper"))
    return _behind_smooth_test(request, sigma, *found)


def _least_sigma(request: LabelRequest, largest: Fraction) -> Fraction | None:
    """The least noise with which votes as believed would pass in 9 of 10 cases, found to a few percent."""

    def passes(sigma: Fraction) -> bool:
        return _smooth_test(request, sigma).epsilon <= request.budget.epsilon

    high = largest * Fraction(99, 100)
    if not passes(high):
        return None
    low = _LEAST_SMOOTH
    for _ in range(_HALVINGS):
        middle = Fraction(f"{math.sqrt(float(low) * float(high)):.6g}")
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _smooth_test(request: LabelRequest, sigma: Fraction) -> SmoothTest:
    return smooth_plan(
        request.belief.votes(),
        sigma=sigma,
        delta=request.budget.delta,
        teachers=request.size.teachers,
        neighbours=request.budget.neighbours,
    )


def _within(request: LabelRequest, sigma: Fraction) -> tuple[SmoothTest, bool] | None:
    """The test with the limit that the budget leaves, and whether the belief needs no more; None if none is left."""
    test = _smooth_test(request, sigma)
    limit = Fraction(f"{float(test.limit) + float(request.budget.epsilon) - test.epsilon:.9f}")
    while limit > 0 and (found := replace(test, limit=limit)).epsilon > request.budget.epsilon:
        limit -= Fraction(1, 10**9)
    return (found, limit >= test.limit * Fraction(999, 1000)) if limit > 0 else None


def _behind_smooth_test(request: LabelRequest, sigma: Fraction, test: SmoothTest, likely: bool) -> Proposal:
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
    plan = Plan(title(request), smooth_test.THEOREM, steps, proposal, forecast, budget, Unit.TEACHER)
    return Proposal(plan, NoisyLabels(sigma), test)


def _search(request: LabelRequest, sigma: Fraction) -> Search:
    size, sure = request.size, request.confidence
    if sure is None:
        return plain_search(
            request.budget, teachers=size.teachers, queries=size.queries, classes=size.classes, sigma=sigma
        )
    losses = confident_losses(sigma, sure.at, sure.sigma, size.teachers)
    return confident_search(request.budget, losses, queries=size.queries, classes=size.classes)


def _rounded(sigma: float) -> Fraction:
    return max(Fraction(round(sigma * _PARTS), _PARTS), Fraction(1, _PARTS))


def _draws(request: LabelRequest, sigma: Fraction) -> NoisyLabels | ConfidentLabels:
    sure = request.confidence
    return NoisyLabels(sigma) if sure is None else ConfidentLabels(sigma, sure.at, sure.sigma)


def title(request: LabelRequest) -> str:
    """What the plan is for."""
    size = request.size
    return f"Labels of {size.queries:,} queries by {size.teachers:,} teachers"


def numbers(request: LabelRequest, sigma: Fraction) -> dict[str, float]:
    """The proposal in numbers."""
    sure = request.confidence
    more = {} if sure is None else {"threshold": float(sure.at), "threshold_sigma": float(sure.sigma)}
    return {"sigma": float(sigma), **more}


def released(request: LabelRequest, sigma: Fraction, cost: Cost) -> Step:
    """The last step: the labels."""
    sure = request.confidence
    on = "plurality" if sure is None else "confident-plurality"
    params = {} if sure is None else {"threshold": float(sure.at), "threshold_scale": float(sure.sigma)}
    noise = StepNoise(on, "gaussian", float(sigma), "votes", request.size.queries, params)
    return Step("release", StepKind.RELEASE, noise, cost)


def believed(request: LabelRequest) -> str:
    """The condition under which forecasts hold."""
    return "leads-of-all-sizes" if request.belief.assumed else "votes-as-believed"


def expected(request: LabelRequest, sigma: Fraction) -> Note:
    """How good the labels will be."""
    answers, right = request.answers(float(sigma))
    params: dict[str, Amount] = {"share": right, "condition": believed(request)}
    if request.confidence is None:
        return Note("plurality-share", params)
    return Note("answers-share", {**params, "answers": answers})


def compared(request: LabelRequest) -> tuple[Note, ...]:
    """How good they would be without a test."""
    least = request.least_plain
    if least is None:
        return ()
    _, right = request.answers(float(least))
    return (Note("without-a-test", {"scale": float(least), "share": right}),)
