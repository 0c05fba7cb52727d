"""Charges to a ledger: as it is, under one key, for one part of the data, or within one reservation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict, Unpack

from snugdp.core.guarantee import Cost
from snugdp.core.outcome import Receipt, Unit
from snugdp.ledger import requests
from snugdp.ledger.composition.limits import Remaining
from snugdp.ledger.errors import KeyConflictError
from snugdp.ledger.handle import New, OpenLedger
from snugdp.ledger.history import records
from snugdp.ledger.history.state import Charge, Part, State
from snugdp.ledger.parts import TablePart
from snugdp.ledger.question import Question
from snugdp.ledger.requests import Announced, Costly
from snugdp.ledger.stores.store import Transaction

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger

_unit_of = lru_cache(Unit.of_label)


class ChargeKeywords(TypedDict, total=False):
    """What is written down beside a cost; see ``Ledger.charge``."""

    plan: str
    question: Question | None
    announced: Announced


class View(OpenLedger):
    """Takes charges for a ledger. Accepted wherever a ledger is.

    With a key it pays for one release: a second charge is refused, and an unused one cannot be pickled, for each of
    its copies would be another try of the same release. A copy is the view itself.
    """

    def __init__(
        self,
        ledger: Ledger,
        key: str | None = None,
        part: Part | None = None,
        within: int | None = None,
        used: bool = False,
    ) -> None:
        self._ledger, self._key, self._part, self._inside, self._used = ledger, key, part, within, used
        self._handle, self._lock = ledger._handle, threading.Lock()

    @property
    def restricted_to(self) -> TablePart | None:
        """The part of the table whose rows alone its releases may read; None where they may read all."""
        if self._part is None:
            return None
        state = self._handle.state
        state.check_part(self._part)
        return TablePart(state.partitions[self._part[0]], self._part[1])

    def affords(self, cost: Costly | Sequence[Costly]) -> bool:
        """Whether this would be accepted now; a key that was charged before costs nothing again."""
        charge = self._of(cost)
        return self._handle.look(lambda state, _: self._charged_in(state) or state.affords(charge))

    def _of(self, cost: Costly | Sequence[Costly]) -> Charge:
        asked = requests.total(cost, self.budget)
        return self._asked(asked.cost, "", self._key, announced=asked.announced)

    def payable(self, costs: Sequence[Costly]) -> int:
        """As ``Ledger.payable``, for this part or reservation. Under a key there is one charge."""
        if self._key is not None:
            if len(costs) > 1:
                raise KeyConflictError(f"a key names one release: give the ledger itself, not under {self._key!r}")
            return sum(self.affords(cost) for cost in costs)
        charges = [self._asked(one.cost, "", None, announced=one.announced) for one in requests.each(costs)]
        return self._handle.look(lambda state, _: state.payable(charges))

    def remaining_after(self, cost: Costly | Sequence[Costly]) -> Remaining | None:
        """As ``Ledger.remaining_after``, for this part, reservation or key."""
        charge = self._of(cost)
        return self._handle.look(
            lambda state, _: state.remaining if self._charged_in(state) else state.remaining_after(charge)
        )

    def _charged_in(self, state: State) -> bool:
        return self._key is not None and state.seq_of(requests.charge(Cost(), "", self._key)) is not None

    def charge(self, cost: Cost, what: str, *, key: str | None = None, **details: Unpack[ChargeKeywords]) -> Receipt:
        """As ``Ledger.charge``, for this part, reservation or key."""
        if self._key is None:
            return self._write(self._asked(cost, what, key, **details))
        if key not in (None, self._key):
            raise ValueError(f"this view has the key {self._key!r} already: leave key out")
        with self._lock:
            self._require_fresh()
            receipt = self._write(self._asked(cost, what, self._key, **details))
            self._used = True
            return receipt

    def _write(self, charge: Charge) -> Receipt:
        def decide(state: State, _: Transaction) -> tuple[tuple[int, str, str], New | None]:
            seq = state.found(charge)
            if seq is not None:
                known = state.charge_at(seq)
                return (seq, charge.what if known is None else known.what, state.hash_at(seq) or ""), None
            judged = state.charged(charge, records.stamp())
            return (judged.record.seq, charge.what, judged.record.hash), New(judged)

        seq, what, mark = self._handle.within(decide, writes=True)
        return Receipt(self.label, seq, what, charge.cost, charge.key, mark, _unit_of(self.unit))

    def knows(self, cost: Cost, what: str, **details: Unpack[ChargeKeywords]) -> bool:
        """As ``Ledger.knows``, for this part, reservation or key."""
        if self._key is None:
            return False
        with self._lock:
            self._require_fresh()
        charge = self._asked(cost, what, self._key, **details)
        return self._handle.look(lambda state, _: state.found(charge) is not None)

    def _require_fresh(self) -> None:
        if self._used:
            raise KeyConflictError(
                f"a key names one release, and {self._key!r} was used: use another key for another release"
            )

    def _asked(self, cost: Cost, what: str, key: str | None, **details: Unpack[ChargeKeywords]) -> Charge:
        return requests.charge(cost, what, key, part=self._part, within=self._inside, **details)

    def recall(self, receipt: Receipt) -> str | None:
        """As ``Ledger.recall``."""
        return self._ledger.recall(receipt)

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        """As ``Ledger.settle``."""
        return self._ledger.settle(receipt, body)

    def once(self, key: str) -> View:
        """The same under one key."""
        if self._key is not None:
            raise ValueError(f"this view has the key {self._key!r} already")
        return View(self._ledger, requests.key(key), self._part, self._inside)

    def reserve(self, cost: Costly | Sequence[Costly], what: str, *, key: str | None = None, plan: str = "") -> View:
        """As ``Ledger.reserve``, for this part."""
        if self._key is not None or self._inside is not None:
            raise ValueError("reserve on the ledger or on a part of it, not on a key or within a reservation")
        asked = requests.total(cost, self.budget)
        given: ChargeKeywords = {"plan": plan, "announced": asked.announced}
        charge = requests.charge(asked.cost, what, key, part=self._part, reserve=True, **given)
        return View(self._ledger, part=self._part, within=self._write(charge).sequence)

    def __repr__(self) -> str:
        marks = {"key": self._key, "part": self._part, "within": self._inside}
        shown = ", ".join(f"{name}={value!r}" for name, value in marks.items() if value is not None)
        return f"View({self._ledger!r}, {shown})"

    def __reduce__(self) -> tuple[object, ...]:
        if self._key is not None and not self._used:
            raise TypeError(
                "a key is for one release, and copies in other processes would each try it: give the ledger itself to "
                "a search or to workers"
            )
        return View, (self._ledger, self._key, self._part, self._inside, self._used)
