"""The ledger in memory: refuses before it is overspent, exactly, also between threads; never copied or forked."""

import contextlib
import copy
import math
import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from snugdp import Budget, BudgetExceededError, Cost, MemoryLedger, RelationMismatchError
from snugdp.accounting import gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.ledger.memory import RunLedger
from tests.ledger.faults import in_child, in_threads


def test_a_refused_charge_leaves_the_total() -> None:
    ledger = MemoryLedger(1, 1e-6)
    first = ledger.charge(Cost(epsilon=0.7), "first")
    assert (first.sequence, first.what, first.cost) == (1, "first", Cost(epsilon=0.7))
    with pytest.raises(BudgetExceededError, match="does not cover"):
        ledger.charge(Cost(epsilon=0.4), "second")
    assert ledger.spent == Cost(epsilon=0.7)
    assert ledger.charge(Cost(epsilon=0.3, delta=1e-6), "third").sequence == 2


def test_gaussian_parts_add_in_squares() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    for _ in range(4):
        ledger.charge(Cost(mu=0.118), "quarter")
    with pytest.raises(BudgetExceededError):
        ledger.charge(Cost(mu=0.118), "one too many")


def test_threads_share_one_budget() -> None:
    ledger, granted = MemoryLedger(5), []

    def spend(_: int) -> None:
        for _ in range(20):
            with contextlib.suppress(BudgetExceededError):
                granted.append(ledger.charge(Cost(epsilon=0.1), "x").sequence)

    assert in_threads(8, spend) == []
    assert sorted(granted) == list(range(1, 51))
    assert ledger.spent == Cost(epsilon=5)


def test_relations_do_not_mix() -> None:
    with pytest.raises(RelationMismatchError):
        MemoryLedger(1).charge(Cost(epsilon=0.1, neighbours="replace"), "x")


def test_a_copy_is_the_ledger_itself() -> None:
    ledger = MemoryLedger(1)
    for duplicate in (copy.copy(ledger), copy.deepcopy(ledger), copy.deepcopy({"ledger": [ledger]})["ledger"][0]):
        assert duplicate is ledger
        duplicate.charge(Cost(epsilon=0.2), "through a copy")
    assert ledger.spent == Cost(epsilon=0.6)


def test_no_pickles() -> None:
    with pytest.raises(TypeError, match="forget"):
        pickle.dumps(MemoryLedger(1))


def test_a_forked_process_cannot_spend() -> None:
    ledger = MemoryLedger(1)
    code, said = in_child(lambda: ledger.charge(Cost(epsilon=0.1), "x"))
    assert code == 1
    assert said.startswith(b"RuntimeError")


def test_a_kind_chosen_by_looking_at_an_answer_is_not_covered() -> None:
    """Why a total that fits is not enough: two totals fit, their mixture does not. The ledger takes neither in full."""
    budget, first = Budget(1, 1e-6), Fraction(gaussian.mu(1, 1e-6)) * Fraction(3, 10)

    def largest(second: Callable[[Fraction], Cost]) -> float:
        low, high = 0.0, 4.0
        for _ in range(30):
            middle = (low + high) / 2
            fits = (Cost(mu=first) + second(Fraction(middle))).fits(budget)
            low, high = (middle, high) if fits else (low, middle)
        return low

    pure, mu = largest(lambda x: Cost(epsilon=x)), largest(lambda x: Cost(mu=x))
    z = np.linspace(-12, 12, 100_001)
    weight = norm.pdf(z) / norm.pdf(z).sum()
    left = 1 - float(first) ** 2 / 2 - float(first) * z  # of epsilon, after the loss of the first answer
    normal = norm.cdf(mu / 2 - left / mu) - np.exp(left) * norm.cdf(-mu / 2 - left / mu)
    p, q = 1 / (1 + math.exp(-pure)), 1 / (1 + math.exp(pure))
    coin = np.maximum(0, p - np.exp(left) * q) + np.maximum(0, q - np.exp(left) * p)
    assert weight @ normal == pytest.approx(1e-6, rel=1e-3)
    assert weight @ coin == pytest.approx(1e-6, rel=1e-3)
    assert weight @ np.maximum(normal, coin) > 1.9e-6
    ledger = MemoryLedger(1, 1e-6)
    ledger.charge(Cost(mu=first), "the answer that is looked at")
    assert not ledger.affords(Cost(epsilon=pure))
    assert not ledger.affords(Cost(mu=mu))


def test_what_remains_can_be_spent() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    assert (ledger.remaining.epsilon, ledger.remaining.delta) == (1, 1e-6)
    ledger.charge(Cost(epsilon="0.3", delta="1e-7"), "bounds")
    ledger.charge(Cost(mu="0.05"), "mean")
    left = ledger.remaining
    assert ledger.affords(Cost(epsilon=left.epsilon))
    assert ledger.spent == Cost(mu="0.05", epsilon="0.3", delta="1e-7")  # asking is free
    ledger.charge(Cost(mu=left.mu), "all that is left")
    assert ledger.remaining.mu < 1e-6
    with pytest.raises(BudgetExceededError, match="left"):
        ledger.charge(Cost(mu="0.01"), "more")


def test_a_refused_first_charge_fixes_nothing() -> None:
    ledger = MemoryLedger(1, 1e-6)
    with pytest.raises(BudgetExceededError):
        ledger.charge(Cost(mu="0.3"), "too much")
    ledger.charge(Cost(epsilon=1, delta=1e-6), "everything")


@pytest.mark.parametrize("cost", [Cost(epsilon="0.17"), Cost(mu="0.05"), Cost(mu="0.07", epsilon="0.1")])
def test_it_says_how_many_charges_it_can_pay(cost: Cost) -> None:
    """As many as it then takes, not what their sum at once would let one hope for."""
    ledger = MemoryLedger(1, 1e-6)
    number = ledger.payable([cost] * 1000)
    assert 0 < number < 1000
    assert ledger.payable([cost] * number) == number
    assert ledger.spent == Cost()
    for _ in range(number):
        ledger.charge(cost, "one of many")
    assert ledger.payable([cost]) == 0
    assert ledger.payable([]) == 0
    with pytest.raises(BudgetExceededError):
        ledger.charge(cost, "one too many")


def test_a_run_says_how_many_charges_it_can_pay() -> None:
    run = RunLedger(Budget(1, 1e-6), Cost(epsilon="0.5"))
    assert run.payable([Cost(epsilon="0.2")] * 5) == 2
    parts = RunLedger(Budget(1), parts=(Budget("0.8"), Budget("0.2")))
    assert parts.payable([Cost(epsilon="0.2")] * 3) == 2
    assert parts.payable([Cost(epsilon="0.3")] * 3) == 1
    run.close()
    assert run.payable([Cost(epsilon="0.1")]) == 0


def test_a_run_says_what_it_affords() -> None:
    run = RunLedger(Budget(1, 1e-6), Cost(mu="0.2", epsilon="0.5"))
    assert run.affords(Cost(mu="0.2", epsilon="0.5"))
    run.charge(Cost(mu="0.1"), "first")
    run.charge(Cost(epsilon="0.5"), "of another kind, as planned")
    assert not run.affords(Cost(epsilon="0.1"))
    assert run.affords(Cost(mu="0.1"))
    run.close()
    assert not run.affords(Cost(mu="0.1"))


def test_a_run_without_a_plan_has_one_charge_for_each_part() -> None:
    whole, parts = Budget(1, 1e-6), (Budget("0.8", "8e-7"), Budget("0.2", "2e-7"))
    run = RunLedger(whole)
    run.charge(Cost(epsilon=0.1), "the run")
    with pytest.raises(BudgetExceededError, match="one release"):
        run.charge(Cost(epsilon=0.1), "another")
    scored = RunLedger(whole, parts=parts)
    with pytest.raises(BudgetExceededError, match="one release"):
        scored.charge(Cost(epsilon=0.9), "too much for its part")
    scored.charge(Cost(epsilon=0.8), "the run")
    scored.charge(Cost(epsilon=0.2), "its score")
    with pytest.raises(BudgetExceededError, match="one release"):
        scored.charge(Cost(epsilon=0), "more")


def test_atoms_of_a_sum_stay_in_the_order_that_ledgers_write() -> None:
    drawn = np.random.default_rng(5).integers(0, 30, size=(40, 2)).tolist()
    atoms = [Atom((Branch(Fraction(a, 7), Fraction(b)),), (Branch(Fraction(b, 11), Fraction(a)),)) for a, b in drawn]
    total = Cost()
    for start in range(0, 40, 5):
        total = total + Cost(atoms=tuple(atoms[start : start + 5]))
        assert total == Cost(atoms=tuple(atoms[: start + 5]))
        assert total.atoms == tuple(sorted(atoms[: start + 5], key=repr))
    assert sum((Cost(atoms=(atom,)) for atom in reversed(atoms)), Cost()) == total == Cost() + total
