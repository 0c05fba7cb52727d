"""The ledger in memory: refuses before it is overspent, exactly, also between threads; never copied or forked."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import threading

import pytest

from snugdp import BudgetExceededError, Cost, MemoryLedger, RelationMismatchError


def test_a_refused_charge_leaves_the_total() -> None:
    ledger = MemoryLedger(1, 1e-6)
    first = ledger.charge(Cost(epsilon=0.7), "first")
    assert (first.sequence, first.what, first.cost) == (1, "first", Cost(epsilon=0.7))
    with pytest.raises(BudgetExceededError, match="does not cover"):
        ledger.charge(Cost(epsilon=0.4), "second")
    assert ledger.spent == Cost(epsilon=0.7)
    assert ledger.charge(Cost(epsilon=0.3, delta=1e-6), "third").sequence == 2


def test_gaussian_parts_add_in_squares() -> None:
    ledger = MemoryLedger(1, 1e-6)
    for _ in range(4):
        ledger.charge(Cost(mu=0.118), "quarter")
    with pytest.raises(BudgetExceededError):
        ledger.charge(Cost(mu=0.118), "one too many")


def test_threads_share_one_budget() -> None:
    ledger, granted = MemoryLedger(5), []

    def spend() -> None:
        for _ in range(20):
            with contextlib.suppress(BudgetExceededError):
                granted.append(ledger.charge(Cost(epsilon=0.1), "x").sequence)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
    child = os.fork()
    if child == 0:
        try:
            ledger.charge(Cost(epsilon=0.1), "x")
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
