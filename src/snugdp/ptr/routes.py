"""What every run of a selection may spend, by which route, and the plan that says so. All of it is public.

Proof: ``select.proof.md``, Theorems 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from snugdp.accounting import selection
from snugdp.accounting.rational import Real, rational
from snugdp.accounting.selection import Law
from snugdp.guarantee import Budget, Cost, shown
from snugdp.noise.stopping import cut_off
from snugdp.ptr.propose import Plan, Step

Route: TypeAlias = Literal["stop", "compose"]

ROUTES: tuple[Route, ...] = ("stop", "compose")
PROOF = "ptr/select.proof.md#theorem-1"
COMPOSED = "ptr/select.proof.md#theorem-2"
_LAWS = ("geometric", "logarithmic", "poisson", "binomial")
_DIGITS = 5  # of a run's epsilon: rounded down
_STEPS = 14  # of the bisection: finer than the digits
_FAILURES = Fraction(99, 100)  # the part of delta that the failures of all expected runs may take
_MOST = 10**5  # expected runs


@dataclass(frozen=True)
class Ask:
    """What a selection is about. ``run_plan(proposal, budget)``, ``score_plan(budget)``: plans, if they are known."""

    proposals: Sequence[Any]
    budget: Budget
    law: Law
    most: int | None
    run_plan: Callable[..., Plan] | None
    score_plan: Callable[..., Plan] | None
    score_share: Fraction

    def split(self, whole: Budget) -> tuple[Budget, Budget | None]:
        """A run's budget, divided between the release and its score."""
        if not self.score_share:
            return whole, None
        return scaled(whole, 1 - self.score_share), scaled(whole, self.score_share)

    def base(self, whole: Budget, proposals: Sequence[Any]) -> tuple[Cost, bool]:
        """A cost that dominates a run within this budget, and whether plans say so: else it is only known to fit."""
        run, score = self.split(whole)
        anything = Cost(epsilon=whole.epsilon, delta=whole.delta, neighbours=whole.neighbours)
        if self.run_plan is None or (score is not None and self.score_plan is None):
            return anything, False
        costs = [_planned(self.run_plan(proposal, run), run) for proposal in proposals]
        worst = _worst([cost for cost in costs if cost is not None])
        if score is not None and self.score_plan is not None:
            costs.append(_planned(self.score_plan(score), score))
            worst = worst + costs[-1] if costs[-1] is not None else worst
        return (anything, False) if None in costs else (worst, True)


@dataclass(frozen=True)
class Runs:
    """One route: a run's budget, a cost that dominates a run, and what the whole costs."""

    route: Route
    law: Law | None  # of the number of runs
    most: int
    whole: Budget
    base: Cost
    known: bool
    cost: Cost

    @property
    def limit(self) -> Cost | None:
        """What the ledger of a run holds it to, part by part; without plans it is the budget."""
        return self.base if self.known else None

    def strength(self, delta: Fraction) -> float:
        """The epsilon of a run's noise, its failures apart: what the routes are compared by."""
        return replace(self.base, delta=Fraction(0)).epsilon_at(delta) if self.base.mu_squared else float(self.base.epsilon)


def stop(ask: Ask) -> Runs:
    """A random number of runs, each as strong as the total affords."""
    budget, law = ask.budget, ask.law
    delta = budget.delta * _FAILURES / rational(law.mean, "mean")

    def affords(base: Cost) -> bool:
        return Fraction(selection.delta(base, law, budget.epsilon)) <= budget.delta

    whole, base, known = _largest(ask, affords, budget.epsilon, delta)
    cost = Cost(epsilon=budget.epsilon, delta=budget.delta, neighbours=budget.neighbours)
    return Runs("stop", law, ask.most or cut_off(law), whole, base, known, cost)


def compose(ask: Ask) -> Runs:
    """Every proposal once, all of them paid for."""
    budget, k = ask.budget, len(ask.proposals)
    whole, base, known = _largest(ask, lambda base: times(base, k).fits(budget), budget.epsilon, budget.delta / k)
    return Runs("compose", None, k, whole, base, known, times(base, k))


def cheapest(ask: Ask, route: str | None) -> tuple[Runs, Runs | None]:
    """The route asked for; or the cheaper one, and the other: trying everything wins if it leaves a run no less."""
    if route is not None:
        return (stop(ask) if route == "stop" else compose(ask)), None
    every, some = compose(ask), stop(ask)
    if every.strength(ask.budget.delta) >= some.strength(ask.budget.delta):
        return every, some
    return some, every


def planned(ask: Ask, chosen: Runs, other: Runs | None, test: Step | None) -> Plan:
    """The plan of a selection, with what was decided and why."""
    k = len(ask.proposals)
    each = f"each with epsilon {shown(chosen.whole.epsilon)} at delta {shown(chosen.whole.delta)}"
    if chosen.law is None:
        how, proof = f"every one of {k} proposals once, {each}", COMPOSED
    else:
        how, proof = f"a hidden number of runs of {k} proposals, {chosen.law}, {each}", PROOF
    step = Step("select", how, chosen.cost)
    return Plan(
        what=f"the best of {k} proposals",
        proof=proof,
        proposal={"proposals": k} | ({} if chosen.law is None else {"mean_runs": float(chosen.law.mean)}),
        steps=(step,) if test is None else (test, step),
        forecast=(*_expected(ask, chosen), *_compared(ask, chosen, other)),
        budget=ask.budget,
    )


def law_of(law: str | Law, mean: Real | None, k: int) -> Law:
    """The law of the number of runs, by name and mean; by default as many as there are proposals."""
    if isinstance(law, Law):
        if mean is not None:
            raise ValueError("this law has its own mean: leave out mean_runs, or name the law")
        return law
    if law not in _LAWS:
        raise ValueError(f"law must be one of {', '.join(_LAWS)}, or a law of snugdp.accounting.selection")
    runs = rational(max(k, 2) if mean is None else mean, "mean_runs")
    if not 1 < runs <= _MOST:
        raise ValueError(f"mean_runs must be above 1, and at most {_MOST}")
    if law == "binomial":
        tosses = 2 * math.ceil(runs)
        return selection.binomial(tosses, runs / tosses)
    made: Law = getattr(selection, law)(runs)
    return made


def scaled(budget: Budget, share: Fraction) -> Budget:
    """This part of a budget."""
    return Budget(budget.epsilon * share, budget.delta * share, budget.neighbours)


def times(cost: Cost, k: int) -> Cost:
    """The cost of ``k`` releases of this cost; it has no atoms and no variation."""
    return Cost(
        mu_squared=cost.mu_squared * k, epsilon=cost.epsilon * k, delta=cost.delta * k, neighbours=cost.neighbours
    )


def _planned(plan: Plan, budget: Budget) -> Cost | None:
    """The cost of a plan; none if it is of the kind that selection has no accounting for."""
    if not isinstance(plan, Plan):
        raise TypeError("plan must return a snugdp.Plan, that of the release with this budget")
    cost = plan.cost
    cost.neighbours.require(budget.neighbours)
    if not cost.fits(budget):
        raise ValueError("the plan of a run costs more than the budget it was given")
    return None if cost.atoms or cost.variation else cost


def _worst(costs: Sequence[Cost]) -> Cost:
    """A cost that dominates each of them: the largest of every part."""
    if not costs:
        return Cost()
    return Cost(
        mu_squared=max(cost.mu_squared for cost in costs),
        epsilon=max(cost.epsilon for cost in costs),
        delta=max(cost.delta for cost in costs),
        neighbours=costs[0].neighbours,
    )


def _largest(
    ask: Ask, affords: Callable[[Cost], bool], most: Fraction, delta: Fraction
) -> tuple[Budget, Cost, bool]:
    """The largest budget of a run, at this delta, whose cost is affordable. The first proposal finds it, all confirm."""

    def budget(epsilon: float) -> Budget:
        return Budget(epsilon, delta, ask.budget.neighbours)

    def good(epsilon: float) -> bool:
        return affords(ask.base(budget(epsilon), ask.proposals[:1])[0])

    high = low = _down(float(most))
    while not good(low):
        high, low = low, low / 2
        if low < float(most) / 2**20:
            raise ValueError("the budget is too small for so many runs: give a larger epsilon or delta, or fewer runs")
    for _ in range(_STEPS if high > low else 0):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if good(middle) else (low, middle)
    whole = budget(_down(low))
    base, known = ask.base(whole, ask.proposals)
    while not affords(base):  # another proposal costs more, or the digits rounded the wrong way
        whole = budget(_down(float(whole.epsilon) * 0.99))
        base, known = ask.base(whole, ask.proposals)
    return whole, base, known


def _down(value: float) -> float:
    """Rounded down to a few digits."""
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float(f"{math.floor(value / step * (1 + 1e-12)) * step:.{_DIGITS}g}")
