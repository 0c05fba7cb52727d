"""What every run of a selection may spend, by which route, and the plan that says so. All of it is public.

Proof: ``select.proof.md``, Theorems 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from snugdp.accounting import selection
from snugdp.accounting.selection import Law
from snugdp.core.guarantee import Budget, Cost
from snugdp.noise.exact.stopping import check_stopping, cut_off
from snugdp.numerics.rationals import Real, rational
from snugdp.propose.forecast import Amount, Forecast, Note
from snugdp.propose.plan import Plan, Step, StepKind, StepNoise
from snugdp.propose.theorem import theorem

Route: TypeAlias = Literal["stop", "compose"]

STOPPED, COMPOSED, TESTED = theorem("select/1"), theorem("select-all/1"), theorem("select-tested/1")
STEP = "select"
ROUTES: tuple[Route, ...] = ("stop", "compose")
_DIGITS = 5  # of a run's epsilon: rounded down
_NODES = 40  # of a sum that nothing depends on
_STEPS = 14  # of the bisection: finer than the digits
_FAILURES = Fraction(99, 100)  # the part of delta that the failures of all expected runs may take
_MAX_MEAN_RUNS = 10**5
_NO = Fraction(0)


@dataclass(frozen=True)
class SharedTest:
    """A release before all runs: its budget, a cost that dominates it, and whether its plan says so."""

    whole: Budget
    cost: Cost
    known: bool

    @classmethod
    def of(cls, whole: Budget, plan: Callable[..., Plan] | None) -> SharedTest:
        """With this budget, and a ``plan(budget)`` if there is one."""
        cost = whole.cost if plan is None else _planned(plan(whole), whole)
        if not cost.fits(whole):
            raise ValueError("the plan of shared_test costs more than the budget it was given")
        return cls(whole, cost, plan is not None)

    @property
    def limit(self) -> Cost | None:
        """What its ledger holds it to, part by part; without a plan it is the budget."""
        return self.cost if self.known else None

    @property
    def gaussian(self) -> bool:
        """Whether it is Gaussian but for a failure, which has an accounting of its own."""
        return not (self.cost.epsilon or self.cost.variation or self.cost.atoms)


@dataclass(frozen=True)
class SelectionRequest:
    """What a selection is about. ``run_plan(proposal, budget)``, ``score_plan(budget)``: plans, if they are known."""

    proposals: Sequence[Any]
    budget: Budget
    law: Law
    most: int | None
    run_plan: Callable[..., Plan] | None
    score_plan: Callable[..., Plan] | None
    score_share: Fraction
    test: SharedTest | None = None

    def split(self, whole: Budget) -> tuple[Budget, Budget | None]:
        """A run's budget, divided between the release and its score."""
        if not self.score_share:
            return whole, None
        return scaled(whole, 1 - self.score_share), scaled(whole, self.score_share)

    def base(self, whole: Budget, proposals: Sequence[Any]) -> tuple[Cost, bool]:
        """A cost that dominates a run within this budget, and whether plans say so: else it is only known to fit."""
        run, score = self.split(whole)
        if self.run_plan is None or (score is not None and self.score_plan is None):
            return whole.cost, False
        worst = _worst([_planned(self.run_plan(proposal, run), run) for proposal in proposals])
        if worst is None:
            return whole.cost, False
        if score is not None and self.score_plan is not None:
            worst += _planned(self.score_plan(score), score)
        return worst, True


@dataclass(frozen=True)
class RunBudget:
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


def stop(request: SelectionRequest) -> RunBudget:
    """A random number of runs, each as strong as the total affords."""
    budget, law = request.budget, request.law
    left = budget.delta if request.test is None else budget.delta - request.test.whole.delta
    delta = left * _FAILURES / rational(selection.mean(law), "mean_runs")

    def affords(base: Cost, sure: bool) -> bool:
        return _delta(request, base) <= budget.delta if sure else _guess(request, base) <= float(budget.delta)

    whole, base, known = _largest(request, affords, budget.epsilon, delta)
    return RunBudget("stop", law, request.most or cut_off(law), whole, base, known, budget.cost)


def _delta(request: SelectionRequest, base: Cost) -> Fraction:
    """The delta of the selection, and of the test before it, at the epsilon of the budget. Proved."""
    law, test, epsilon = request.law, request.test, request.budget.epsilon
    if test is None:
        return _proved(base, law, epsilon)
    if test.gaussian:
        return _proved(base, law, epsilon, after=True, mu=Fraction(test.cost.mu), failure=test.cost.delta)
    return _proved(base, law, epsilon - test.whole.epsilon, after=True) + test.whole.delta


@lru_cache(maxsize=256)  # the same plan is made again at every fit
def _proved(
    base: Cost, law: Law, epsilon: Fraction, *, after: bool = False, mu: Fraction | None = None, failure: Fraction = _NO
) -> Fraction:
    """The delta of a selection; ``after`` a test, which certifies one data set, a run is known one way (Theorem 3).

    ``mu``, ``failure``: of a test that is Gaussian but for its failure; the delta is then that of both.
    """
    run = selection.of_cost_one_way(base) if after else base
    if mu is None:
        return Fraction(selection.delta(run, law, epsilon))
    return Fraction(selection.shared_delta(run, law, epsilon, test=mu, failure=failure))


def _guess(request: SelectionRequest, base: Cost) -> float:
    """The same in floats, quickly: nothing is promised."""
    law, test, epsilon = request.law, request.test, float(request.budget.epsilon)
    if test is None:
        return _guessed(base, law, (epsilon,))[0]
    if not test.gaussian:
        return _guessed(base, law, (epsilon - float(test.whole.epsilon),), True)[0] + float(test.whole.delta)
    mu = test.cost.mu
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    found = _guessed(base, law, tuple((epsilon - mu * mu / 2 - mu * nodes).tolist()), True)
    return float(weights @ found / weights.sum()) + float(test.cost.delta)


@lru_cache(maxsize=1024)
def _guessed(base: Cost, law: Law, epsilons: tuple[float, ...], one_way: bool = False) -> tuple[float, ...]:
    bounds = selection.bounds(selection.float_of_cost(base, one_way=one_way), law)

    def one(epsilon: float) -> float:
        alone = max(bound.guess(abs(epsilon)) for bound in bounds)
        return alone if epsilon >= 0 else 1 - math.exp(epsilon) * (1 - alone)

    return tuple(map(one, epsilons))


def compose(request: SelectionRequest) -> RunBudget:
    """Every proposal once, all of them paid for."""
    budget, k = request.budget, len(request.proposals)
    test = Cost(neighbours=budget.neighbours) if request.test is None else request.test.cost

    def affords(base: Cost, _: bool) -> bool:
        return (times(base, k) + test).fits(budget)

    whole, base, known = _largest(request, affords, budget.epsilon, (budget.delta - test.delta) / k)
    return RunBudget("compose", None, k, whole, base, known, times(base, k) + test)


def cheapest(request: SelectionRequest, route: str | None) -> tuple[RunBudget, RunBudget | None]:
    """The route asked for; or the cheaper one, and the other: trying everything wins if it leaves a run no less."""
    if route is not None:
        return (stop(request) if route == "stop" else compose(request)), None
    every, some = compose(request), stop(request)
    if every.strength(request.budget.delta) >= some.strength(request.budget.delta):
        return every, some
    return some, every


def planned(request: SelectionRequest, chosen: RunBudget, other: RunBudget | None) -> Plan:
    """The plan of a selection, with what was decided and why."""
    k, law = len(request.proposals), chosen.law
    params: dict[str, Amount] = {"epsilon": chosen.whole.epsilon, "delta": chosen.whole.delta, "proposals": k}
    proved, on = (COMPOSED, "every-proposal") if law is None else (STOPPED, "hidden-runs")
    if law is not None:
        params["runs"] = law.name
    if request.test is not None:
        proved, params["tests"] = TESTED, 1
    step = Step(STEP, StepKind.RUNS, StepNoise(on, params=params), chosen.cost)
    proposal: dict[str, float] = {"proposals": k} if law is None else {"proposals": k, "mean_runs": selection.mean(law)}
    notes = (*_expected(request, chosen), *_compared(request, chosen, other), Note("rehearse-first"))
    return Plan(f"The best of {k} proposals", proved, (step,), proposal, Forecast(notes=notes), request.budget)


def _expected(request: SelectionRequest, chosen: RunBudget) -> tuple[Note, ...]:
    k, law = len(request.proposals), chosen.law
    if law is None:
        return (Note("best-tried-surely"),)
    tried = {"probability": selection.best_tried(law, k), "quantile": selection.expected_quantile(law)}
    beyond = {"probability": selection.beyond(law, chosen.most), "most": chosen.most}
    return Note("best-tried", tried), Note("too-many-runs", beyond), Note("time-tells-runs")


def _compared(request: SelectionRequest, chosen: RunBudget, other: RunBudget | None) -> tuple[Note, ...]:
    if other is None:
        return ()
    here, there = (runs.strength(request.budget.delta) for runs in (chosen, other))
    return (
        Note(
            "routes-compared",
            {
                "chosen": chosen.route,
                "epsilon": here,
                "other": other.route,
                "other_epsilon": there,
                "delta": request.budget.delta,
            },
        ),
    )


def law_of(law: str | Law, mean: Real | None, k: int) -> Law:
    """The law of the number of runs, by name and mean; by default as many as there are proposals."""
    if not isinstance(law, str):
        check_stopping(law, 1)
        if mean is not None:
            raise ValueError("this law has its own mean: leave out mean_runs, or name the law")
        return law
    if law not in selection.NAMES:
        raise ValueError(f"law must be one of {', '.join(selection.NAMES)}, or a law of snugdp.accounting.selection")
    runs = rational(max(k, 2) if mean is None else mean, "mean_runs")
    if not 1 < runs <= _MAX_MEAN_RUNS:
        raise ValueError(f"mean_runs must be above 1, and at most {_MAX_MEAN_RUNS}")
    return selection.NAMES[law](runs)


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


def _largest(
    request: SelectionRequest, affords: Callable[[Cost, bool], bool], most: Fraction, delta: Fraction
) -> tuple[Budget, Cost, bool]:
    """The largest affordable budget of a run, at this delta: the first proposal finds it, then all are made sure of."""

    def budget(epsilon: float) -> Budget:
        return Budget(epsilon, delta, request.budget.neighbours)

    def good(epsilon: float) -> bool:
        return affords(request.base(budget(epsilon), request.proposals[:1])[0], False)

    request.base(budget(float(most)), request.proposals)  # a proposal that cannot be planned says so here
    high = low = _down(float(most))
    while not good(low):
        high, low = low, low / 2
        _enough(low, most)
    for _ in range(_STEPS if high > low else 0):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if good(middle) else (low, middle)
    slack = 10.0**-_DIGITS
    while True:
        whole = budget(_down(low))
        base, known = request.base(whole, request.proposals)
        if affords(base, True):
            return whole, base, known
        low, slack = low * (1 - slack), min(0.5, 16 * slack)  # a proposal that costs more, or rounding
        _enough(low, most)


def _enough(epsilon: float, most: Fraction) -> None:
    if epsilon < float(most) / 2**20:
        raise ValueError("the budget is too small for so many runs: give a larger epsilon or delta, or fewer runs")


def _down(value: float) -> float:
    """Rounded down to a few digits."""
    step = 10.0 ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float(f"{math.floor(value / step * (1 + 1e-12)) * step:.{_DIGITS}g}")
