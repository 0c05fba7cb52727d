"""The spine: pays before it draws, stamps rehearsals, and keeps its theorems on random finite mechanisms."""

from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import BudgetExceededError, Cost, Exact, MemoryLedger, NotPrivate, Receipt, Refused, Released, Simulation
from snugdp.release.context import ReleaseContext
from snugdp.release.spine import certify_and_release, release_or_refuse
from snugdp.secrecy.secret import PrivateComputationError, Secret
from tests.accounting.hockey import hockey_stick
from tests.effort import often, repeated, sampled
from tests.plans import plan_of

PLAN = plan_of("a test of the spine", {"test": Cost(epsilon=1), "release": Cost()})


class Diary:
    """A ledger, a test and a mechanism that write down in which order they are called."""

    def __init__(self, passing: bool = True) -> None:
        self.lines: list[str] = []
        self.passing = passing

    def charge(self, cost: Cost, what: str) -> Receipt:
        self.lines.append("charge")
        return Receipt("diary", 1, what, cost)

    def passes(self, data: Secret[int], noise: Any) -> bool:
        self.lines.append("test")
        return self.passing

    def certify(self, data: Secret[int], noise: Any) -> float:
        self.lines.append("certify")
        return 2.5

    def draw(self, data: Secret[int], *certificate_and_noise: Any) -> str | None:
        self.lines.append("draw")
        return "value" if self.passing else None


@pytest.mark.parametrize("passing", [True, False])
def test_refusing_form_pays_tests_and_releases_or_draws_nothing(passing: bool) -> None:
    diary = Diary(passing)
    outcome = release_or_refuse(PLAN, diary, diary, Secret(0), ReleaseContext(Exact(), diary))
    assert diary.lines == ["charge", "test", "draw"][: 2 + passing]
    assert isinstance(outcome, Released if passing else Refused)
    assert outcome.receipt.what == PLAN.title
    assert (outcome.value, outcome.cost, bool(outcome)) == ("value" if passing else None, Cost(epsilon=1), passing)


@pytest.mark.parametrize("passing", [True, False])
def test_calibrating_form_releases_its_certificate(passing: bool) -> None:
    diary = Diary(passing)
    outcome = certify_and_release(PLAN, diary, diary, Secret(0), ReleaseContext(Exact(), diary))
    assert diary.lines == ["charge", "certify", "draw"]
    assert outcome.refused is not passing
    if isinstance(outcome, Released):
        assert outcome.certificate == 2.5


def test_nothing_is_drawn_when_the_budget_is_short() -> None:
    diary, ledger = Diary(), MemoryLedger(0.5, composition="tight")
    with pytest.raises(BudgetExceededError):
        release_or_refuse(PLAN, diary, diary, Secret(0), ReleaseContext(Exact(), ledger))
    assert diary.lines == []
    assert ledger.spent == Cost()


def test_a_rehearsal_has_no_receipt_and_no_ledger() -> None:
    diary = Diary()
    outcome = release_or_refuse(PLAN, diary, diary, Secret(0), ReleaseContext(Simulation(1)))
    assert isinstance(outcome, NotPrivate)
    assert "NOT PRIVATE" in repr(outcome)
    assert not hasattr(outcome, "receipt")
    with pytest.raises(ValueError, match="NOT PRIVATE"):
        ReleaseContext(Simulation(1), MemoryLedger(1, composition="tight"))
    with pytest.raises(ValueError, match="ledger"):
        ReleaseContext(Exact())
    for wrong in (Simulation, 1):
        with pytest.raises(TypeError, match="source of noise"):
            ReleaseContext(wrong)  # type: ignore[arg-type]
    for other in (snugdp.Budget(1), MemoryLedger):
        with pytest.raises(TypeError, match="must be a ledger"):
            ReleaseContext(Exact(), other)  # type: ignore[arg-type]


class Empty(list[str]):
    """A ledger that is false until something is written, and one that gives no receipt."""

    receipts = True

    def charge(self, cost: Cost, what: str) -> Receipt:
        self.append(what)
        return Receipt("empty", len(self), what, cost) if self.receipts else None  # type: ignore[return-value]


def test_an_empty_ledger_is_a_ledger() -> None:
    diary, ledger = Diary(), Empty()
    assert isinstance(release_or_refuse(PLAN, diary, diary, Secret(0), ReleaseContext(Exact(), ledger)), Released)
    assert ledger == [PLAN.title]


def test_without_a_receipt_nothing_is_drawn() -> None:
    diary, ledger = Diary(), Empty()
    ledger.receipts = False
    with pytest.raises(TypeError, match="no receipt"):
        release_or_refuse(PLAN, diary, diary, Secret(0), ReleaseContext(Exact(), ledger))
    assert diary.lines == []


class Broken(Diary):
    """A test and a mechanism whose private computation fails on some data."""

    def passes(self, data: Secret[int], noise: Any) -> bool:
        data.map(lambda value: 1 // value)
        return True

    def certify(self, data: Secret[int], noise: Any) -> float:
        data.map(lambda value: 1 // value)
        return 1.0


@pytest.mark.parametrize("form", [release_or_refuse, certify_and_release])
def test_a_failed_private_computation_is_a_refusal(form: Any) -> None:
    ledger = MemoryLedger(1, composition="tight")
    assert isinstance(form(PLAN, Broken(), Broken(), Secret(0), ReleaseContext(Exact(), ledger)), Refused)
    assert ledger.spent == PLAN.cost
    with pytest.raises(PrivateComputationError):
        form(PLAN, Broken(), Broken(), Secret(0), ReleaseContext(Simulation(1)))


def test_a_secret_is_not_a_release() -> None:
    class Careless(Diary):
        def draw(self, data: Secret[int], *rest: Any) -> Any:
            return data

    outcome = release_or_refuse(
        PLAN, Careless(), Careless(), Secret(5), ReleaseContext(Exact(), MemoryLedger(1, composition="tight"))
    )
    assert isinstance(outcome, Refused)
    with pytest.raises(TypeError, match="private value"):
        release_or_refuse(PLAN, Careless(), Careless(), Secret(5), ReleaseContext(Simulation(1)))


def response(loss: float) -> tuple[Any, Any]:
    """Randomised response with this loss: the extreme pair of laws."""
    w = np.exp(loss) / (1 + np.exp(loss))
    return np.array([w, 1 - w]), np.array([1 - w, w])


def blurred(generator: np.random.Generator, loss: float) -> tuple[Any, Any]:
    """A random pair of laws within the loss: randomised response through a random channel, or as it is."""
    p, q = response(loss)
    if generator.uniform() < 0.5:
        return p, q
    channel = generator.dirichlet(np.full(4, 0.3), size=2)
    return p @ channel, q @ channel


def refusing_laws(generator: np.random.Generator, good: bool, e_test: float, e_mech: float, failure: float) -> Any:
    """The laws of the refusing form on two neighbours; the first is good, or neither is."""
    if good:
        (t, *_), (s, *_) = blurred(generator, e_test)
        m, n = blurred(generator, e_mech)
    else:
        t, s = failure * generator.choice([0, 1, generator.uniform()], 2)
        m, n = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    return np.append(t * m, 1 - t), np.append(s * n, 1 - s)


def worst_excess(claim: Cost, e_test: float, e_mech: float, failure: float, alone: bool) -> float:
    """How far the exact delta of random refusing algorithms rises above what the cost says."""
    generator, worst = np.random.default_rng(7), -1.0
    claims = {e: claim.delta_at(e) for e in (0.0, 0.3, 0.6, 0.7, 0.9, 1.2)}
    if alone:
        claims = {e: max(Cost(epsilon=claim.epsilon).delta_at(e), failure) for e in claims}
    for trial in range(often(1500, 4000)):
        p, q = refusing_laws(generator, trial % 3 > 0, e_test, e_mech, failure)
        for epsilon, delta in claims.items():
            worst = max(worst, hockey_stick(p, q, epsilon) - delta, hockey_stick(q, p, epsilon) - delta)
    return worst


@sampled(2)
@repeated
@pytest.mark.parametrize("alone", [False, True])
def test_theorem_a1_on_random_finite_mechanisms(alone: bool) -> None:
    claim = Cost(epsilon=0.3) + Cost(epsilon=0.6) + Cost(delta=0.05)
    assert worst_excess(claim, 0.3, 0.6, 0.05, alone) <= 1e-9


def test_theorem_a1_would_notice_a_missing_part() -> None:
    assert worst_excess(Cost(epsilon=0.6, delta=0.05), 0.3, 0.6, 0.05, alone=False) > 0.01
    assert worst_excess(Cost(epsilon=0.9, delta=0.03), 0.3, 0.6, 0.05, alone=False) > 0.01


def test_theorem_a2_needs_the_sum() -> None:
    """Two certificates; the second is false on X with probability 0.05, and then everything is revealed."""
    failure, e_mech = 0.05, 0.6
    w = np.exp(e_mech) / (1 + np.exp(e_mech))
    p = np.array([(1 - failure) * w, (1 - failure) * (1 - w), failure, 0])
    q = np.array([(1 - failure) * (1 - w), (1 - failure) * w, 0, failure])
    claim = Cost(epsilon=e_mech, delta=failure)
    for epsilon in (-0.5, 0.0, 0.3, 0.6, 1.0):
        assert hockey_stick(p, q, epsilon) <= claim.delta_at(epsilon) + 1e-12
    assert hockey_stick(p, q, 0.3) > max(Cost(epsilon=e_mech).delta_at(0.3), failure) + 0.01


def test_one_sided_certificates_do_not_pay_the_maximum() -> None:
    """The neighbour is certified with itself first; in the other order the outputs are not close."""
    level, failure, seen = np.log(2), 0.05, 0.5
    m, m2 = np.array([seen, 1 - seen]), np.array([0.0, 1.0])
    assert hockey_stick(m2, m, level) == 0  # the neighbour first: certified, and it always passes
    assert hockey_stick(m, m2, level) == seen  # this data set first: not certified, and it passes rarely
    d_test = 1 - failure  # so the test is (0, d_test)-close
    exact = hockey_stick(np.append(failure * m, 1 - failure), np.append(m2, 0.0), level)
    assert exact > max(failure, d_test) + 0.02
    assert exact <= failure + d_test + 1e-12
