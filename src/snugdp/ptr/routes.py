"""What every run of a selection may spend, by which route, and the plan that says so. All of it is public.

Proof: ``select.proof.md``, Theorems 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from snugdp.accounting import selection_laws as laws
from snugdp.accounting.rational import Real, rational
from snugdp.accounting.selection_laws import Law
from snugdp.guarantee import Budget, Cost, shown
from snugdp.noise.stopping import check_stopping, cut_off
from snugdp.ptr.propose import Plan, Step

Route: TypeAlias = Literal["stop", "compose"]

ROUTES: tuple[Route, ...] = ("stop", "compose")
PROOF = "ptr/select.proof.md#theorem-1"
COMPOSED = "ptr/select.proof.md#theorem-2"
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
        worst = _worst([_planned(self.run_plan(proposal, run), run) for proposal in proposals])
        if worst is None:
            return anything, False
        if score is not None and self.score_plan is not None:
            worst += _planned(self.score_plan(score), score)
        return worst, True


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
        return replace(self.base, delta=Fraction(0)).epsilon_at(delta)


def stop(ask: Ask) -> Runs:
    """A random number of runs, each as strong as the total affords."""
    budget, law = ask.budget, ask.law
    delta = budget.delta * _FAILURES / rational(laws.mean(law), "mean_runs")

    def affords(base: Cost) -> bool:
        return Fraction(_accounting().delta(base, law, budget.epsilon)) <= budget.delta

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


def planned(ask: Ask, chosen: Runs, other: Runs | None, whole: Budget, test: Budget | None) -> Plan:
    """The plan of a selection within the whole budget, with what was decided and why."""
    k = len(ask.proposals)
    each = f"each with epsilon {shown(chosen.whole.epsilon)} at delta {shown(chosen.whole.delta)}"
    if chosen.law is None:
        how, proof = f"every one of {k} proposals once, {each}", COMPOSED
    else:
        how, proof = f"a hidden number of runs of {k} proposals, {chosen.law.name}, {each}", PROOF
    steps: tuple[Step, ...] = (Step("select", how, chosen.cost),)
    if test is not None:
        cost = Cost(epsilon=test.epsilon, delta=test.delta, neighbours=test.neighbours)
        steps = (Step("test", "one release before all runs", cost), *steps)
    return Plan(
        what=f"the best of {k} proposals",
        proof=proof,
        proposal={"proposals": k} | ({} if chosen.law is None else {"mean_runs": laws.mean(chosen.law)}),
        steps=steps,
        forecast=(*_expected(ask, chosen), *_compared(ask, chosen, other)),
        budget=whole,
    )


def law_of(law: str | Law, mean: Real | None, k: int) -> Law:
    """The law of the number of runs, by name and mean; by default as many as there are proposals."""
    if not isinstance(law, str):
        check_stopping(law, 1)
        if mean is not None:
            raise ValueError("this law has its own mean: leave out mean_runs, or name the law")
        return law
    if law not in laws.NAMES:
        raise ValueError(f"law must be one of {', '.join(laws.NAMES)}, or a law of snugdp.accounting.selection")
    runs = rational(max(k, 2) if mean is None else mean, "mean_runs")
    if not 1 < runs <= _MOST:
        raise ValueError(f"mean_runs must be above 1, and at most {_MOST}")
    return laws.NAMES[law](runs)


def scaled(budget: Budget, share: Fraction) -> Budget:
    """A part of a budget: the same part of epsilon and of delta."""
    return Budget(budget.epsilon * share, budget.delta * share, budget.neighbours)


def times(cost: Cost, k: int) -> Cost:
    """The cost of ``k`` releases of this cost."""
    return Cost(
        mu_squared=cost.mu_squared * k,
        epsilon=cost.epsilon * k,
        delta=cost.delta * k,
        variation=cost.variation * k,
        atoms=cost.atoms * k,
        neighbours=cost.neighbours,
    )


def _expected(ask: Ask, chosen: Runs) -> tuple[str, ...]:
    k, law = len(ask.proposals), chosen.law
    if law is None:
        return ("the best proposal is tried for certain",)
    return (
        f"the best proposal is tried with probability {laws.best_tried(law, k):.3g}; the winner beats "
        f"{laws.expected_quantile(law):.1%} of all runs on average",
        f"nothing at all with probability {laws.beyond(law, chosen.most):.1g}, after more than {chosen.most} runs",
        "how long it takes tells about the number of runs, which is hidden: keep the time to yourself",
    )


def _compared(ask: Ask, chosen: Runs, other: Runs | None) -> tuple[str, ...]:
    if other is None:
        return ()
    here, there = (runs.strength(ask.budget.delta) for runs in (chosen, other))
    ways = {"stop": "a random number of runs", "compose": "every proposal once"}
    return (
        f"{ways[chosen.route]} leaves a run epsilon {here:.3g} at delta {shown(ask.budget.delta)}, "
        f"{ways[other.route]} {there:.3g}",
    )


def _accounting() -> Any:
    """Loaded when it is needed: a plain import stays light."""
    from snugdp.accounting import selection

    return selection


def _planned(plan: Plan, budget: Budget) -> Cost:
    if not isinstance(plan, Plan):
        raise TypeError("plan must return a snugdp.Plan, that of the release with this budget")
    plan.cost.neighbours.require(budget.neighbours)
    return plan.cost


def _worst(costs: Sequence[Cost]) -> Cost | None:
    """A cost that dominates each of them: the largest of every part; none where parts cannot be compared."""
    first = costs[0]
    if any(cost.atoms != first.atoms for cost in costs):
        return None
    parts = {
        name: max(getattr(cost, name) for cost in costs) for name in ("mu_squared", "epsilon", "delta", "variation")
    }
    return Cost(**parts, atoms=first.atoms, neighbours=first.neighbours)


def _largest(ask: Ask, affords: Callable[[Cost], bool], most: Fraction, delta: Fraction) -> tuple[Budget, Cost, bool]:
    """The largest affordable budget of a run, at this delta: the first proposal finds it, all confirm it."""

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
