"""A ledger under one key, for one part of the data, or within one reservation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Receipt
from snugdp.ledger import requests
from snugdp.ledger.errors import KeyConflictError
from snugdp.ledger.limits import Remaining
from snugdp.ledger.question import Question
from snugdp.ledger.requests import Costly
from snugdp.ledger.state import Charge, Part

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger


class View:
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
        self._lock = threading.Lock()

    @property
    def label(self) -> str:
        """The name of the data set."""
        return self._ledger.label

    @property
    def address(self) -> str:
        """Where the ledger is."""
        return self._ledger.address

    @property
    def neighbours(self) -> Neighbours:
        """The relation of every charge."""
        return self._ledger.neighbours

    @property
    def budget(self) -> Budget | Cost:
        """The budget of the whole ledger."""
        return self._ledger.budget

    def affords(self, cost: Costly | Sequence[Costly]) -> bool:
        """Whether this would be accepted now; a key that was charged before costs nothing again."""
        return self._ledger._affords(cost, self._key, self._part, self._inside)

    def remaining_after(self, cost: Costly | Sequence[Costly]) -> Remaining | None:
        """As ``Ledger.remaining_after``, for this part, reservation or key."""
        return self._ledger._remaining_after(cost, self._key, self._part, self._inside)

    def charge(
        self, cost: Cost, what: str, *, key: str | None = None, plan: str = "", question: Question | None = None
    ) -> Receipt:
        """As ``Ledger.charge``, for this part, reservation or key."""
        if self._key is None:
            return self._ledger._charge(self._asked(cost, what, key, plan, question))
        if key not in (None, self._key):
            raise ValueError(f"this view has the key {self._key!r} already: leave key out")
        with self._lock:
            self._require_fresh()
            receipt = self._ledger._charge(self._asked(cost, what, self._key, plan, question))
            self._used = True
            return receipt

    def knows(self, cost: Cost, what: str, *, plan: str = "", question: Question | None = None) -> bool:
        """As ``Ledger.knows``, for this part, reservation or key."""
        if self._key is None:
            return False
        with self._lock:
            self._require_fresh()
        return self._ledger._knows(self._asked(cost, what, self._key, plan, question))

    def _require_fresh(self) -> None:
        if self._used:
            raise KeyConflictError(
                f"a key names one release, and {self._key!r} was used: take another key for another release"
            )

    def _asked(self, cost: Cost, what: str, key: str | None, plan: str, question: Question | None) -> Charge:
        return requests.charge(cost, what, key, plan, part=self._part, within=self._inside, question=question)

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
        return self._ledger._reserve(cost, what, key, plan, self._part)

    def __repr__(self) -> str:
        marks = {"key": self._key, "part": self._part, "within": self._inside}
        shown = ", ".join(f"{name}={value!r}" for name, value in marks.items() if value is not None)
        return f"View({self._ledger!r}, {shown})"

    def __copy__(self) -> View:
        return self

    def __deepcopy__(self, memo: object) -> View:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self._key is not None and not self._used:
            raise TypeError(
                "a key is for one release, and copies in other processes would each try it: give the ledger itself to "
                "a search or to workers"
            )
        return View, (self._ledger, self._key, self._part, self._inside, self._used)
