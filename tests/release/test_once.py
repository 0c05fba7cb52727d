"""Attacks on the guard between charge and outcome: what a ledger, a draw or a stage of one's own may try."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp import Budget, Cost, Ledger, LedgerError, MemoryLedger, Refused
from snugdp.ledger.question import question
from snugdp.noise import Laplace
from snugdp.release.spine import release
from snugdp.release.stages import Advance
from snugdp.secrecy.secret import PrivateComputationError, Secret
from tests.plans import plan_of
from tests.release.escapes import CANARY, Shelf, ended, shown

PLAN = plan_of("a count", Cost(epsilon=1))


def made(draw: Any) -> Any:
    return snugdp.from_distance(distance=lambda rows: 10**6, draw=draw, budget=Budget(1, 1e-6))


class Count:
    """A mechanism that counts how often it draws."""

    def __init__(self) -> None:
        self.draws = 0

    def draw(self, data: Any, noise: Any) -> float:
        self.draws += 1
        return float(noise.at("release").add(data, Laplace(1)))


def test_a_stage_pays_once_however_often_its_purse_is_copied() -> None:
    receipt = MemoryLedger(5, 0).charge(Cost(epsilon=1), "all")
    context, count = Advance(snugdp.Exact(), Cost(epsilon=1), receipt), Count()
    for _ in range(3):
        ended(lambda: release(PLAN, count, Secret(100), context.with_question(lambda: question("q"))))
    assert count.draws == 1


def test_a_full_disk_does_not_carry_the_draw(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "people.ledger", dataset="people", budget=Budget(9, 0.1)) as ledger:

        def draw(data: Any, noise: Any) -> str:
            ledger._handle.store._sql.execute("PRAGMA max_page_count=1")  # type: ignore[attr-defined]
            return CANARY * 10_000

        for _ in range(2):
            _, error = ended(lambda: made(draw)([1], ledger=ledger.once("k")))
            assert isinstance(error, LedgerError)
            assert CANARY not in shown(error)


def test_what_a_draw_raises_is_not_even_looked_at() -> None:
    class Evil:
        def __str__(self) -> str:
            raise LedgerError(Evil())

        __repr__ = __str__

    def draw(data: Any, noise: Any) -> Any:
        private = CANARY
        raise LedgerError(Evil(), private)

    shelf: Any = Shelf(hash="evil")
    assert isinstance(made(draw)([1], ledger=shelf), Refused)
    assert len(shelf.stored) == 1


def test_an_exception_without_a_module_stays_inside() -> None:
    class Odd(BaseException):
        __module__ = None  # type: ignore[assignment]

    def fail(value: str) -> None:
        raise Odd(value)

    with pytest.raises(PrivateComputationError) as caught:
        Secret(CANARY).map(fail)
    assert CANARY not in shown(caught.value)


def test_a_missing_entry_of_an_array_does_not_decide_the_outcome() -> None:
    noise, law = snugdp.Simulation(1), snugdp.noise.Gaussian(2)
    for kind in (np.int64, np.float64, object):
        values: Any = np.ma.array(np.array([1000, 2000], dtype=kind), mask=[False, True])
        found = np.array(noise.add_integers(Secret(values), law), dtype=float)
        assert abs(found - [1000, 0]).max() < 50
        assert [bool(hit) for hit in noise.reach(Secret(values), law, 500)] == [True, False]
    days: Any = np.array([10**6], dtype="m8[ns]")
    assert abs(float(next(iter(noise.add_integers(Secret(days), law))))) < 50


@pytest.mark.parametrize("draw", [None, 5, lambda: 1, lambda data: 1])
def test_a_draw_that_cannot_be_called_is_refused_when_it_is_given(draw: Any) -> None:
    with pytest.raises(TypeError, match=r"draw must be a function of \(data, noise\)"):
        made(draw)
    wrong: Any = None if draw is None else lambda: 1
    with pytest.raises(TypeError, match="distance must be a function"):
        snugdp.from_distance(distance=wrong, draw=lambda data, noise: 1, budget=Budget(1, 1e-6))
