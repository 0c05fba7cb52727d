"""Selection: one charge, a hidden number of runs, the winner that the proof speaks of, and its exact privacy."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb

import snugdp
from snugdp import (
    Budget,
    BudgetExceededError,
    Cost,
    Exact,
    MemoryLedger,
    NotPrivate,
    Plan,
    Refused,
    Released,
    Selected,
    Selection,
    Simulation,
    select,
)
from snugdp.accounting import selection as accounting
from snugdp.ledger.memory import RunLedger
from snugdp.mechanisms.selection import routes
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.serial.codec import StoredOutcome
from tests.effort import sampled
from tests.plans import plan_of

BUDGET = Budget(1, 0.05)
LAWS = ("geometric", "logarithmic", "poisson", "binomial", "eta")


def law_named(name: str, mean: int = 4) -> Any:
    if name == "eta":
        return accounting.truncated_negative_binomial(Fraction(-1, 2), mean)
    return accounting.NAMES[name](mean)


def paid(value: Any, cost: Cost, ledger: Any, noise: Any = None) -> Any:
    """The outcome of a release of this cost; a refusal if there is no value."""
    plan = plan_of("a run", cost)
    return ReleaseContext(noise, ledger, Budget(9, 0.9)).pay(
        plan, lambda *_: StoredOutcome(refused=value is None, value=value)
    )


class ManyRuns(accounting.NegativeBinomial):
    """Paid for as a geometric law of mean 2, drawn as a thousand runs."""

    def masses(self) -> Iterator[Any]:
        return iter([arb(0)] * 1000 + [arb(1)])


class LooksLikeALaw:
    """Everything that was asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(accounting.geometric(2), name)


@pytest.mark.parametrize("law", [ManyRuns(Fraction(1), Fraction(1, 2)), LooksLikeALaw(), 3, None])
def test_a_law_that_is_not_ours_is_refused_before_anything_is_planned(law: Any) -> None:
    with pytest.raises(TypeError, match="law must be one of"):
        Selection([1, 2], lambda proposal, budget, ledger: None, lambda release: 0, budget=BUDGET, law=law)
    for noise in (Exact(), Simulation(1)):
        with pytest.raises(TypeError, match="law must be one of"):
            noise.stopping(law, 10)


def test_scores_of_all_types_are_compared_alike() -> None:
    scores: dict[Any, Any] = {
        1: np.float32(0.5), 2: Decimal("0.25"), 3: None, 4: Fraction(3, 4), 5: 10**400, 6: math.nan, 7: np.array(0.9),
        8: Decimal("sNaN"), 9: "a",
    }  # fmt: skip

    def run(proposal: int, budget: Budget, ledger: Any) -> Any:
        return paid(proposal, budget.cost, ledger)

    for best, among in ((5, scores), (7, {k: v for k, v in scores.items() if k != 5}), (3, {3: None, 9: "a"})):
        ask = Selection(list(among), run, lambda release: scores[release.value], budget=Budget(9, 0.5), route="compose")
        outcome = ask.release()
        assert outcome.value is not None
        assert outcome.value.proposal == best


class Script(Exact):
    """Real noise as far as ledgers see it; the number of runs and the proposals are as written."""

    def __init__(self, runs: int, choices: Iterator[int] | None = None) -> None:
        self.runs, self.choices = runs, choices
        self.cut: int | None = None

    def stopping(self, law: Any, most: int) -> int:
        self.cut = most
        return self.runs

    def choice(self, n: int) -> int:
        return 0 if self.choices is None else next(self.choices)


class Told:
    """A run that releases what is written, refuses where that is None, and fails where it is an exception."""

    def __init__(self, values: list[Any]) -> None:
        self.values, self.calls, self.ledgers = values, 0, list[Any]()

    def __call__(self, proposal: Any, budget: Budget, ledger: Any) -> Any:
        value = self.values[self.calls % len(self.values)]
        self.calls += 1
        self.ledgers.append(ledger)
        outcome = paid(None if isinstance(value, Exception) else value, budget.cost, ledger)
        if isinstance(value, Exception):
            raise value
        return outcome


def value_of(release: Any) -> float:
    return float(release.value)


def stopping(run: Any, score: Any = value_of, k: int = 3, **options: Any) -> Selection[Any]:
    return Selection(list(range(k)), run, score, budget=BUDGET, **{"route": "stop", **options})


# ---- the algorithm


def test_the_winner_is_the_first_of_the_best() -> None:
    """All sequences of up to three runs, with refusals and failures, proposals included."""
    made = stopping(Told([0.0]), k=2)
    outcomes: list[Any] = [0.0, 1.0, 2.0, None, ValueError("private")]
    for length in range(4):
        for values in product(outcomes, repeat=length):
            for choices in {tuple(i % 2 for i in range(length)), (1,) * length}:
                run = Told(list(values) or [5.0])
                object.__setattr__(made, "run", run)
                outcome = made.release(noise=Script(length, iter(choices)))
                assert run.calls == length
                numbers = [value for value in values if isinstance(value, float)]
                if not numbers:
                    assert isinstance(outcome, Refused)
                    continue
                assert isinstance(outcome, Released)
                first = values.index(max(numbers))
                assert (outcome.value.proposal, outcome.value.score) == (choices[first], max(numbers))
                assert outcome.value.release.value == max(numbers)


def test_a_score_that_is_no_number_is_the_worst_of_the_released() -> None:
    run = Told([1.0, 2.0, 3.0])
    score = {1.0: math.nan, 2.0: -math.inf, 3.0: -5.0}
    assert stopping(run, lambda release: score[release.value]).release(noise=Script(3)).value.score == -5.0  # type: ignore[union-attr]
    outcome = stopping(Told([1.0]), lambda release: math.nan).release(noise=Script(1))
    assert isinstance(outcome, Released)
    assert outcome.value.score == -math.inf


@pytest.mark.slow
def test_real_noise_finds_the_best() -> None:
    def run(proposal: int, budget: Budget, ledger: Any) -> Any:
        return paid(float(proposal), budget.cost, ledger)

    made = stopping(run, mean_runs=40, k=4)
    best = [outcome.value.proposal for _ in range(60) if (outcome := made.release()).value is not None]
    assert best.count(3) > 40


# ---- money


def test_exactly_one_charge() -> None:
    ledger = MemoryLedger(5, 0.2, composition="tight")
    outcome = stopping(Told([1.0, 2.0])).release(ledger=ledger, noise=Script(7))
    assert isinstance(outcome, Released)
    assert ledger.spent == outcome.cost == BUDGET.cost
    assert outcome.receipt.sequence == 1
    assert outcome.cost.fits(BUDGET)
    assert isinstance(stopping(Told([None])).release(ledger=ledger, noise=Script(3)), Refused)
    assert ledger.spent == BUDGET.cost + BUDGET.cost


def test_nothing_is_run_when_the_ledger_is_short() -> None:
    run, ledger = Told([1.0]), MemoryLedger(0.5, 0.2, composition="tight")
    with pytest.raises(BudgetExceededError):
        stopping(run).release(ledger=ledger, noise=Script(3))
    assert run.calls == 0
    assert ledger.spent == Cost()


@pytest.mark.parametrize("law", LAWS)
def test_a_run_gets_what_the_total_affords(law: str) -> None:
    made = Selection([1, 2, 3], Told([1.0]), value_of, budget=BUDGET, law=law_named(law), route="stop")
    base = made._runs.whole.cost
    assert accounting.delta(base, law_named(law), 1) <= 0.05
    more = Cost(epsilon=base.epsilon * Fraction(1001, 1000), delta=base.delta)
    assert accounting.delta(more, law_named(law), 1) > 0.05
    assert made.run_budget == made._runs.whole


class Planned(Told):
    """A Gaussian run whose plan is known."""

    def __call__(self, proposal: Any, budget: Budget, ledger: Any) -> Any:
        self.calls += 1
        return paid(self.values[0], self.plan(proposal, budget).cost, ledger)

    def plan(self, proposal: Any, budget: Budget) -> Plan:
        size = snugdp.accounting.gaussian.mu(budget.epsilon, budget.delta)
        return plan_of("a run", Cost(mu=size, neighbours=budget.neighbours), budget=budget)


class Dear(Told):
    """A run that costs too much, whatever it is given."""

    def plan(self, proposal: Any, budget: Budget) -> Plan:
        return plan_of("a run", Cost(mu=9))


def test_a_plan_lets_a_run_spend_more() -> None:
    """The table of the documentation: mu = 0.1414 at (1, 1e-6) and thirty expected runs."""
    made = Selection(list(range(30)), Planned([1.0]), value_of, budget=Budget(1, 1e-6))
    assert made._runs.route == "stop"
    assert 0.1414 <= made._runs.base.mu < 0.14149
    assert isinstance(made.release(noise=Script(2)), Released)
    rough = Selection(list(range(30)), Told([1.0]), value_of, budget=Budget(1, 1e-6))
    assert rough._runs.base.epsilon < Fraction(2, 5)


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(101, 100)])
@pytest.mark.parametrize("known", [True, False])
def test_a_run_that_spends_more_is_a_refusal(factor: Fraction, known: bool) -> None:
    class Greedy(Planned):
        def __call__(self, proposal: Any, budget: Budget, ledger: Any) -> Any:
            cost = self.plan(proposal, budget).cost if known else budget.cost
            more = Cost(mu_squared=cost.mu_squared * factor, epsilon=cost.epsilon * factor, delta=cost.delta)
            return paid(1.0, more, ledger)

    run: Any = Greedy([1.0])
    chosen = stopping(run if known else lambda *given: run(*given))
    assert chosen.release(noise=Script(2)).refused == (factor > 1)


def test_a_run_that_was_not_charged_to_its_ledger_is_a_refusal() -> None:
    kept: list[Any] = []

    def elsewhere(proposal: Any, budget: Budget, ledger: Any) -> Any:
        return paid(1.0, budget.cost, MemoryLedger(9, 0.9, composition="tight"))

    def again(proposal: Any, budget: Budget, ledger: Any) -> Any:
        kept.append(paid(float(-len(kept)), budget.cost, ledger))
        return kept[0]

    def rehearsed(proposal: Any, budget: Budget, ledger: Any) -> Any:
        return paid(1.0, budget.cost, None, Simulation(1))

    for run in (elsewhere, rehearsed, lambda *given: 1.0):
        assert isinstance(stopping(run).release(noise=Script(4)), Refused)
    outcome = stopping(again, lambda release: len(kept)).release(noise=Script(4))
    assert isinstance(outcome, Released)
    assert outcome.value.score == 1  # the later runs had nothing of their own


def test_the_ledger_of_a_run_is_closed_afterwards() -> None:
    run = Told([1.0, ValueError("x")])
    stopping(run).release(noise=Script(2))
    for ledger in run.ledgers:
        with pytest.raises(BudgetExceededError, match="over"):
            ledger.charge(Cost(), "more")


def test_the_ledger_of_a_run_counts_atoms_and_parts() -> None:
    limit = Cost(mu=0.2, epsilon=0.1, delta=0.01)
    for cost in (Cost(mu=0.21), Cost(epsilon=0.11), Cost(delta=0.02), Cost(variation=0.01)):
        ledger = RunLedger(Budget(9, 0.9), limit)
        with pytest.raises(BudgetExceededError, match="planned"):
            ledger.charge(cost, "x")
        assert ledger.spent == Cost()
        assert ledger.charge(limit, "x").sequence == 1
        with pytest.raises(BudgetExceededError):
            ledger.charge(cost, "x")
    with pytest.raises(snugdp.RelationMismatchError):
        RunLedger(Budget(9, 0.9), limit).charge(Cost(epsilon=0.1, neighbours="replace"), "x")


# ---- what shows


def shown(runs: int, values: list[Any]) -> tuple[Any, ...]:
    ledger = MemoryLedger(5, 0.2, composition="tight")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        outcome = stopping(Warns(values)).release(ledger=ledger, noise=Script(runs), progress=True)
    return outcome, repr(outcome), str(outcome), repr(ledger), ledger._count, [str(w.message) for w in said]


class Warns(Told):
    def __call__(self, proposal: Any, budget: Budget, ledger: Any) -> Any:
        warnings.warn("a run", stacklevel=1)
        return super().__call__(proposal, budget, ledger)


def test_the_number_of_runs_does_not_show(capfd: pytest.CaptureFixture[str]) -> None:
    for values in ([1.0], [None], [ValueError("x")]):
        few = (*shown(1, values), capfd.readouterr())
        many = (*shown(23, values), capfd.readouterr())
        assert few == many
        assert few[5] == []


def test_failures_are_not_exceptions(capfd: pytest.CaptureFixture[str]) -> None:
    class Panic(BaseException):
        pass

    def secret(proposal: Any, budget: Budget, ledger: Any) -> Any:
        paid(1.0, budget.cost, ledger)
        return Secret("Jane Q. Canary").map(lambda text: int(text))

    def panics(proposal: Any, budget: Budget, ledger: Any) -> Any:
        raise Panic

    for run in (secret, panics, Told([RuntimeError("Jane Q. Canary")])):
        assert isinstance(stopping(run).release(noise=Script(3)), Refused)
    assert isinstance(stopping(Told([1.0]), lambda release: 1 / 0).release(noise=Script(3)), Refused)
    for score in (lambda release: "high", lambda release: None):  # no number, but an answer: the worst
        found = stopping(Told([1.0]), score).release(noise=Script(3)).value
        assert found is not None
        assert found.score == -math.inf
    assert "Canary" not in "".join(capfd.readouterr())

    def interrupted(proposal: Any, budget: Budget, ledger: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        stopping(interrupted).release(noise=Script(3))
    assert "Canary" not in "".join(traceback.format_exception(caught.value))


def test_beyond_the_cut_nothing_is_run() -> None:
    run, noise = Told([1.0]), Script(0)
    made = stopping(run, most_runs=9)
    assert isinstance(made.release(noise=noise), Refused)
    assert (run.calls, noise.cut) == (0, 9)
    assert isinstance(made.release(noise=Script(9)), Released)


# ---- rehearsals


def rehearsable(proposal: int, budget: Budget, ledger: Any, noise: Any = None) -> Any:
    if proposal < 0:
        raise ValueError("a mistake")
    return paid(float(proposal), budget.cost, ledger, noise)


def test_a_rehearsal_is_not_private_and_shows_mistakes() -> None:
    made = Selection([1, 2, 3], rehearsable, value_of, budget=BUDGET, mean_runs=20)
    outcome = made.release(noise=Simulation(1))
    assert isinstance(outcome, NotPrivate)
    assert isinstance(outcome.value, Selected)
    assert isinstance(outcome.value.release, NotPrivate)
    assert repr(outcome) == repr(made.release(noise=Simulation(1)))
    with pytest.raises(ValueError, match="a mistake"):
        Selection([-1], rehearsable, value_of, budget=BUDGET).release(noise=Simulation(1))
    with pytest.raises(TypeError, match="noise="):
        stopping(Told([1.0])).release(noise=Simulation(1))
    with pytest.raises(TypeError, match="charged to the ledger"):
        Selection([1], lambda p, b, ledger, noise: 3, value_of, budget=BUDGET).release(noise=Simulation(1))


# ---- routes, private scores, shared tests


def test_few_proposals_are_all_tried_and_many_are_not() -> None:
    one = Selection([1], Planned([1.0]), value_of, budget=Budget(1, 1e-6))
    assert one._runs.route == "compose"
    assert one._runs.base.mu == pytest.approx(0.2367, abs=1e-4)
    two = Selection([1, 2], Planned([1.0]), value_of, budget=Budget(1, 1e-6), mean_runs=300)
    assert two._runs.route == "compose"
    assert two._runs.base.mu == pytest.approx(0.2367 / math.sqrt(2), abs=1e-4)
    for made in (one, two):
        assert made.plan().cost.fits(Budget(1, 1e-6))
        assert made.plan().theorem.id == "select-all/1"
    many = Selection(list(range(30)), Planned([1.0]), value_of, budget=Budget(1, 1e-6))
    assert many._runs.route == "stop"
    assert many.plan().cost == Cost(epsilon=1, delta=1e-6)
    text = str(many.plan())
    assert "every proposal once 0.16" in text
    assert "probability 0.508" in text
    asked = Selection(list(range(30)), Planned([1.0]), value_of, budget=Budget(1, 1e-6), route="compose")
    assert asked._runs.base.mu == pytest.approx(0.0432, abs=1e-4)


def test_composing_runs_every_proposal_once() -> None:
    seen: list[int] = []

    def run(proposal: int, budget: Budget, ledger: Any) -> Any:
        seen.append(proposal)
        return paid(float(-proposal), budget.cost, ledger)

    ledger = MemoryLedger(1, 0.05, composition="tight")
    outcome = select([3, 1, 2], run, value_of, budget=BUDGET, route="compose", ledger=ledger)
    assert seen == [3, 1, 2]
    assert isinstance(outcome, Released)
    assert outcome.value.proposal == 1
    assert ledger.spent == outcome.cost
    assert ledger.spent.epsilon == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("route", ["stop", "compose"])
def test_a_private_score_is_charged_to_the_run(route: str) -> None:
    budgets: list[Budget] = []

    def score(release: Any, budget: Budget, ledger: Any) -> Any:
        budgets.append(budget)
        return paid(-release.value if release.value < 3 else None, budget.cost, ledger)

    run = Told([2.0, 1.0, 3.0])
    made = Selection([1, 2, 3], run, score, budget=BUDGET, route=route, score_share=0.25)
    outcome = made.release(noise=Script(3))
    assert isinstance(outcome, Released)
    assert (outcome.value.score, outcome.value.release.value) == (-1.0, 1.0)
    assert budgets[0].epsilon * 3 == made.run_budget.epsilon
    assert budgets[0].epsilon + made.run_budget.epsilon == made._runs.whole.epsilon
    for ledger in run.ledgers:
        assert ledger.spent == made._runs.whole.cost

    def greedy(release: Any, budget: Budget, ledger: Any) -> Any:
        return paid(1.0, Cost(epsilon=budget.epsilon * 2), ledger)

    refused = Selection([1, 2, 3], run, greedy, budget=BUDGET, route=route, score_share=0.25)
    assert isinstance(refused.release(noise=Script(3)), Refused)


class GaussianTest:
    """A test with a plan: Gaussian, and wrong with a small probability."""

    passing = True

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, budget: Budget, ledger: Any) -> Any:
        self.calls += 1
        return paid("certified" if self.passing else None, self.plan(budget).cost, ledger)

    def plan(self, budget: Budget) -> Plan:
        cost = Cost(mu=0.1, delta=budget.delta / 10)
        return plan_of("a test", cost, budget=budget)


@cache
def size_alone(route: str) -> float:
    """The mu of a run where no test comes before."""
    return Selection([1, 2, 3, 4], Planned([1.0]), value_of, budget=BUDGET, route=route)._runs.base.mu


@pytest.mark.slow
@sampled(6)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("route", ["stop", "compose"])
def test_one_test_before_all_runs(route: str, known: bool) -> None:
    test, seen = GaussianTest(), list[Any]()

    class Given(Planned):
        def __call__(self, proposal: Any, budget: Budget, ledger: Any, certificate: Any = None) -> Any:
            seen.append(certificate.value)
            return super().__call__(proposal, budget, ledger)

    given: Any = test if known else lambda budget, ledger: test(budget, ledger)
    made = Selection(
        [1, 2, 3, 4], Given([1.0]), value_of, budget=BUDGET, route=route, shared_test=given, test_share=0.3
    )
    ledger = MemoryLedger(1, 0.05, composition="tight")
    assert isinstance(made.release(ledger=ledger, noise=Script(5)), Released)
    assert test.calls == 1
    assert set(seen) == {"certified"}
    assert ledger.spent == made.plan().cost
    assert ledger.spent.fits(BUDGET)
    alone = size_alone(route)
    assert made._runs.base.mu < alone
    if known and route == "stop":
        found = routes._delta(made._request, made._runs.base)  # proved and remembered
        assert 0.045 < found <= 0.05
        assert made._runs.base.mu > 0.9 * alone
    test.passing = False
    assert isinstance(made.release(noise=Script(5)), Refused)
    assert len(seen) == (5 if route == "stop" else 4)


def test_a_test_that_costs_more_than_its_share_is_refused_first() -> None:
    class DearTest(GaussianTest):
        def plan(self, budget: Budget) -> Plan:
            cost = Cost(epsilon=budget.epsilon * 2)
            return plan_of("a test", cost)

    with pytest.raises(ValueError, match="shared_test costs more"):
        Selection([1, 2], lambda p, b, c, certificate: 1, value_of, budget=BUDGET, shared_test=DearTest())


# ---- bad input


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"proposals": []}, ValueError, "at least one"),
        ({"proposals": "abc"}, ValueError, "at least one"),
        ({"run": 3}, TypeError, "run must be a function of"),
        ({"run": lambda proposal: 1}, TypeError, "proposal, budget, ledger"),
        ({"score": lambda: 1}, TypeError, "score must be a function of"),
        ({"score": lambda release: 1, "score_share": 0.5}, TypeError, "release, budget, ledger"),
        ({"score": lambda a, b, c: 1, "score_share": 1}, ValueError, "score_share"),
        ({"budget": 1.0}, TypeError, "Budget"),
        ({"law": "uniform"}, ValueError, "geometric, logarithmic"),
        ({"law": 7}, TypeError, "law"),
        ({"mean_runs": 1}, ValueError, "above 1"),
        ({"mean_runs": 10**7}, ValueError, "at most"),
        ({"mean_runs": 3, "law": accounting.geometric(3)}, ValueError, "its own mean"),
        ({"most_runs": 0}, ValueError, "most_runs"),
        ({"route": "both"}, ValueError, "compose"),
        ({"shared_test": lambda: 1, "run": lambda p, b, c, certificate: 1}, TypeError, "shared_test"),
        ({"shared_test": lambda b, c: 1}, TypeError, "certificate"),
        ({"run": Dear([1.0])}, ValueError, "too small for so many runs"),
    ],
)
def test_bad_public_input_is_refused_first(given: dict[str, Any], error: type[Exception], match: str) -> None:
    run = Told([1.0])
    whole_call = {"proposals": [1, 2, 3], "run": run, "score": value_of, "budget": BUDGET, **given}
    ledger = MemoryLedger(9, 0.9, composition="tight")
    with pytest.raises(error, match=match):
        select(**whole_call, ledger=ledger)
    assert ledger.spent == Cost()
    assert run.calls == 0


def test_a_proposal_that_cannot_be_planned_is_refused_first() -> None:
    class Picky(Planned):
        def plan(self, proposal: Any, budget: Budget) -> Plan:
            if proposal == 3:
                raise ValueError("3 is no proposal")
            return super().plan(proposal, budget)

    run = Picky([1.0])
    with pytest.raises(ValueError, match="3 is no proposal"):
        Selection([1, 2, 3], run, value_of, budget=BUDGET)
    assert run.calls == 0
    with pytest.raises(TypeError, match="progress"):
        stopping(run, k=2).release(progress="yes")  # type: ignore[arg-type]
    with pytest.raises(snugdp.RelationMismatchError):
        stopping(run, k=2).release(ledger=MemoryLedger(9, 0.9, "replace", composition="tight"))
    assert run.calls == 0
