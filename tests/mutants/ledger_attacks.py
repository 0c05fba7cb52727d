"""Small attacks on a ledger in this process: crashes between two steps, retries, rewriting, older copies."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import snugdp
from snugdp.core.guarantee import Budget, Cost, RelationMismatchError
from snugdp.ledger import BudgetExceededError, Ledger, LedgerError, MemoryLedger, records
from snugdp.ledger.anchor import FileAnchor
from snugdp.ledger.sqlite import SQLiteStore
from snugdp.noise import Exact

Answer = tuple[str, bool]  # what was seen, and whether that is right
_REFUSALS = (BudgetExceededError, LedgerError, ValueError)


class Crash(BaseException):
    """The process ends here."""


class Counted(Exact):
    """A source that counts its draws, and has to be private to be charged."""

    def __init__(self) -> None:
        self.draws = 0

    def at_least(self, *given: Any) -> bool:
        """One draw."""
        self.draws += 1
        return super().at_least(*given)

    def add(self, *given: Any, **named: Any) -> Fraction:
        """One draw."""
        self.draws += 1
        return super().add(*given, **named)


_QUERY = snugdp.Median(bounds=(0, 1), beta=Fraction(1, 4), epsilon=1, delta="0.1")


def opened(place: Path, epsilon: Any = 3, delta: Any = "0.3") -> Ledger:
    """A ledger at this place, made if there is none."""
    return Ledger.open(place / "people.ledger", dataset="people", budget=Budget(epsilon, delta))


def again(place: Path) -> Ledger:
    """The ledger that is there."""
    return Ledger.open(place / "people.ledger")


def refused(work: Callable[[], Any]) -> bool:
    """Whether it was refused."""
    try:
        work()
    except _REFUSALS:
        return True
    return False


def pays_first(place: Path) -> Answer:
    """A release whose charge is refused draws nothing."""
    noise = Counted()
    with opened(place, "0.5", "0.01") as ledger, contextlib.suppress(BudgetExceededError):
        _QUERY.release([0.5] * 50, ledger=ledger, noise=noise)
    return f"{noise.draws} draws", noise.draws == 0


def one_output(place: Path) -> Answer:
    """Fifty calls with one key: one charge and one output."""
    query = snugdp.TrimmedMean(bounds=(0, 1), epsilon=1, neighbours="replace")
    budget = Budget(3, 0, "replace")
    with Ledger.open(place / "people.ledger", dataset="people", budget=budget) as ledger:
        shown = {query.release([0.5] * 20, ledger=ledger.once("report")).value for _ in range(50)}
        charges = len(ledger.entries())
    return f"{len(shown)} outputs, {charges} charges", len(shown) == 1 and charges == 1


def crash_before_commit(place: Path) -> Answer:
    """A crash at the commit: nothing is spent, and the ledger opens again."""
    ledger = opened(place)
    with mock.patch.object(SQLiteStore, "_commit", side_effect=Crash), contextlib.suppress(Crash):
        ledger.charge(Cost(epsilon=1), "a release")
    with contextlib.suppress(Exception):
        ledger._handle.store.release()
    try:
        with again(place) as other:
            return f"spent {other.spent!r}", other.spent == Cost()
    except LedgerError as error:
        return f"does not open: {type(error).__name__}", False


def crash_after_commit(place: Path) -> Answer:
    """A crash after the commit and before the anchor: the charge stands."""
    ledger = opened(place)
    with mock.patch.object(FileAnchor, "advance", side_effect=Crash), contextlib.suppress(Crash):
        ledger.charge(Cost(epsilon=1), "a release")
    ledger._handle.store.release()
    with again(place) as other:
        return f"spent {other.spent!r}", other.spent == Cost(epsilon=1)


def older_copy(place: Path) -> Answer:
    """An older copy of the file is refused."""
    with opened(place) as ledger:
        ledger.charge(Cost(epsilon=1), "the first")
    shutil.copy(place / "people.ledger", place / "older")
    with again(place) as ledger:
        ledger.charge(Cost(epsilon=2), "the second")
    _gone(place)
    shutil.copy(place / "older", place / "people.ledger")
    caught = refused(lambda: again(place).close())
    return "refused" if caught else "accepted", caught


def forgotten_anchor(place: Path) -> Answer:
    """A ledger that is missing while its anchor is there is not made again."""
    with opened(place) as ledger:
        ledger.charge(Cost(epsilon=3), "everything")
    _gone(place)
    caught = refused(lambda: opened(place).close())
    return "refused" if caught else "made anew", caught


def larger_budget(place: Path) -> Answer:
    """A budget that was edited, with its hash computed again, is refused."""
    with opened(place) as ledger:
        ledger.charge(Cost(epsilon=3), "everything")
    with contextlib.closing(sqlite3.connect(place / "people.ledger")) as base, base:
        text = base.execute("SELECT record FROM ledger WHERE seq = 0").fetchone()[0]
        edited = text.replace('"epsilon":"3"', '"epsilon":"9"')
        base.execute("UPDATE ledger SET record = ?, hash = ? WHERE seq = 0", (edited, records.digest(edited)))
    caught = edited != text and refused(lambda: again(place).charge(Cost(epsilon=5), "more"))
    return "refused" if caught else "accepted", caught


def edited_charge(place: Path) -> Answer:
    """A charge that was made smaller, in its record alone, is refused."""
    with opened(place) as ledger:
        ledger.charge(Cost(epsilon=3), "everything")
    with contextlib.closing(sqlite3.connect(place / "people.ledger")) as base, base:
        text = base.execute("SELECT record FROM ledger WHERE seq = 1").fetchone()[0]
        base.execute("UPDATE ledger SET record = ? WHERE seq = 1", (text.replace('"3"', '"1"'),))
    caught = refused(lambda: again(place).charge(Cost(epsilon=1), "more"))
    return "refused" if caught else "accepted", caught


def edited_output(place: Path) -> Answer:
    """An output that was edited is not shown."""
    query = snugdp.Vote(candidates=["a", "b"], epsilon=1)
    with opened(place) as ledger:
        receipt: Any = query.release(["a"] * 9, ledger=ledger.once("one")).receipt  # type: ignore[union-attr]
    with contextlib.closing(sqlite3.connect(place / "people.ledger")) as base, base:
        base.execute("UPDATE ledger SET body = body || ' ' WHERE body IS NOT NULL")
    caught = refused(lambda: again(place).recall(receipt))
    return "refused" if caught else "shown", caught


def exact_sums(place: Path) -> Answer:
    """Three tenths of three tenths, and nothing beyond: no float is in between."""
    with opened(place, "0.3", 0) as ledger:
        for turn in range(3):
            ledger.charge(Cost(epsilon="0.1"), f"part {turn}")
        whole, caught = ledger.spent == Cost(epsilon="0.3"), refused(lambda: ledger.charge(Cost(epsilon="1e-17"), "x"))
    return f"spent {'exactly' if whole else 'about'} 0.3, one more {'refused' if caught else 'accepted'}", (
        whole and caught
    )


def other_relation(place: Path) -> Answer:
    """A cost of another neighbouring relation is refused."""
    cost = Cost(epsilon=1, neighbours="replace")
    with opened(place) as ledger:
        caught = refused(lambda: ledger.charge(cost, "x"))
    memory = MemoryLedger(3)
    try:
        memory.charge(cost, "x")
        both = False
    except RelationMismatchError:
        both = caught
    return "refused" if both else "accepted", both


def refusal_is_paid(place: Path) -> Answer:
    """A refusal costs what a release costs, and its retry is the same refusal."""
    query = snugdp.Median(bounds=(0, 1), beta=Fraction(1, 4), epsilon=1, delta="1e-12")  # passes so rarely on no rows
    with opened(place) as ledger:
        outcomes = [query.release([], ledger=ledger.once("one")) for _ in range(3)]
        spent = ledger.spent
    right = all(outcome.refused for outcome in outcomes) and spent == outcomes[0].cost
    return f"{sum(outcome.refused for outcome in outcomes)} refusals, spent {spent!r}", right


def no_overspending(place: Path) -> Answer:
    """A second release that the budget does not cover is refused, by another handle too."""
    with opened(place) as one, again(place) as other:
        one.charge(Cost(epsilon=2), "the first")
        caught = refused(lambda: other.charge(Cost(epsilon=2), "the second"))
    memory = MemoryLedger(3)
    memory.charge(Cost(epsilon=2), "the first")
    both = caught and refused(lambda: memory.charge(Cost(epsilon=2), "the second"))
    return "refused" if both else "accepted", both


def after_fork(place: Path) -> Answer:
    """A forked child cannot use the handle of its parent."""
    if not hasattr(os, "fork"):
        return "no forks here", True
    with opened(place) as ledger:
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                code = 0 if refused(lambda: ledger.charge(Cost(epsilon=1), "x")) else 1
            os._exit(code)
        _, status = os.waitpid(child, 0)
    return "refused" if status == 0 else "accepted", status == 0


ATTACKS: dict[str, Callable[[Path], Answer]] = {
    "pays first": pays_first,
    "one output": one_output,
    "crash before the commit": crash_before_commit,
    "crash after the commit": crash_after_commit,
    "older copy": older_copy,
    "missing ledger": forgotten_anchor,
    "larger budget": larger_budget,
    "edited charge": edited_charge,
    "edited output": edited_output,
    "exact sums": exact_sums,
    "other relation": other_relation,
    "refusal": refusal_is_paid,
    "overspending": no_overspending,
    "fork": after_fork,
}


def _gone(place: Path) -> None:
    for name in ("people.ledger", "people.ledger-wal", "people.ledger-shm"):
        with contextlib.suppress(FileNotFoundError):
            (place / name).unlink()
