"""The ledger of an estimator, as it is shown and pickled: without a password, and opened where it is next used."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.core.outcome import Receipt
from snugdp.estimators.base import AbsentLedger
from snugdp.ledger.address import without_password
from snugdp.ledger.question import Question
from snugdp.ledger.shared import NeverCopied

if TYPE_CHECKING:
    from snugdp.ledger.composition.filter import Composition
    from snugdp.ledger.parts import TablePart
    from snugdp.ledger.requests import Announced, Costly


class Address(NeverCopied, str):
    """The URL of a ledger. Its repr and its pickle are without the password.

    >>> Address("postgresql://ana:hush@host/db#census")
    'postgresql://ana@host/db#census'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(without_password(str(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (without_password(str(self)),)


class DeferredLedger(NeverCopied):
    """A ledger in a pickle. It is opened at its first use, so that a model predicts where its ledger is not."""

    def __init__(self, held: bytes, address: str) -> None:
        self._held, self._address = held, address
        self._opened: Any = None

    def _account(self) -> Any:
        if self._opened is None:
            self._opened = pickle.loads(self._held)
        return self._opened

    def charge(
        self, cost: Cost, what: str, *, plan: str = "", question: Question | None = None, announced: Announced = None
    ) -> Receipt:
        """As ``Ledger.charge``."""
        receipt: Receipt = self._account().charge(cost, what, plan=plan, question=question, announced=announced)
        return receipt

    def recall(self, receipt: Receipt) -> str | None:
        """As ``Ledger.recall``."""
        body: str | None = self._account().recall(receipt)
        return body

    def settle(self, receipt: Receipt, body: str | None) -> str | None:
        """As ``Ledger.settle``."""
        stored: str | None = self._account().settle(receipt, body)
        return stored

    @property
    def unit(self) -> str:
        """As ``Ledger.unit``."""
        return str(self._account().unit)

    @property
    def composition(self) -> Composition:
        """As ``Ledger.composition``."""
        composition: Composition = self._account().composition
        return composition

    @property
    def neighbours(self) -> Neighbours:
        """As ``Ledger.neighbours``."""
        neighbours: Neighbours = self._account().neighbours
        return neighbours

    @property
    def restricted_to(self) -> TablePart | None:
        """As ``View.restricted_to``."""
        return getattr(self._account(), "restricted_to", None)

    def affords(self, cost: Costly) -> bool:
        """As ``Ledger.affords``."""
        return bool(self._account().affords(cost))

    def payable(self, costs: Sequence[Costly]) -> int:
        """As ``Ledger.payable``."""
        return int(self._account().payable(costs))

    def __repr__(self) -> str:
        return f"<ledger at {self._address}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return DeferredLedger, (self._held, self._address)


def mask_password(ledger: Any) -> Any:
    """The same ledger, with a password that does not show."""
    if type(ledger) is str and ledger != without_password(ledger):
        return Address(ledger)
    return ledger


def pickled(ledger: Any) -> Any:
    """What is left of a ledger in a pickle: where it is, wherever that is read. One in memory stays behind."""
    from snugdp.ledger import Ledger, MemoryLedger, View

    if isinstance(ledger, MemoryLedger):
        return AbsentLedger()
    if isinstance(ledger, Ledger | View):
        return DeferredLedger(pickle.dumps(ledger), ledger.address)
    if isinstance(ledger, str) and "://" in ledger:
        return without_password(str(ledger))
    return os.path.abspath(ledger) if isinstance(ledger, str | os.PathLike) else ledger
