"""The two outcomes of a paid release and whom they protect, what the ledger wrote first, the stamp of a rehearsal."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from snugdp.core.guarantee import Cost
from snugdp.core.named import NamedChoice

T_co = TypeVar("T_co", covariant=True)
_NOTEBOOK = "snugdp.report.notebook"  # above this package: looked up when an outcome is shown


class UnitMismatchError(ValueError):
    """A ledger protects one unit, a release another: their costs must not be added.

    Examples
    --------
    >>> Unit.PERSON.require(Unit.ROW)
    Traceback (most recent call last):
        ...
    snugdp.core.outcome.UnitMismatchError: this ledger protects persons, but the release protects single rows: ...
    """


class Unit(NamedChoice):
    """Whom a plan protects: who it is that two neighbouring data sets differ in. A ledger has one too.

    Attributes
    ----------
    ROW
        One row of a table, which stands for one person.
    PERSON
        One person, whatever the number of rows.
    TEACHER
        One teacher with all its votes.

    Examples
    --------
    >>> Unit("person") is Unit.PERSON
    True
    """

    ROW = "row"
    PERSON = "person"
    TEACHER = "teacher"

    @classmethod
    def of_label(cls, label: str) -> Unit:
        """The unit of a ledger: "row", "person" or "teacher". Any other label is a name for a row, as "one row" is.

        >>> Unit.of_label("person"), Unit.of_label("one customer")
        (<Unit.PERSON: 'person'>, <Unit.ROW: 'row'>)
        """
        return cls(label) if label in {unit.value for unit in cls} else cls.ROW

    def require(self, released: Unit) -> None:
        """Raise unless a ledger for this unit takes a release for that one.

        Releases for teachers are taken everywhere: whether all rows of a person went to one teacher is up to whoever
        has trained them.
        """
        if released not in (self, Unit.TEACHER):
            raise UnitMismatchError(
                f"this ledger protects {_SEVERAL[self]}, but the release protects {_SEVERAL[released]}: these costs "
                f"must not be added, and nothing was drawn. {_WAYS_OUT[released]}"
            )


_SEVERAL = {Unit.ROW: "single rows", Unit.PERSON: "persons", Unit.TEACHER: "teachers"}
_WAYS_OUT = {
    Unit.ROW: 'Name the column of identifiers, such as person="customer_id", or charge a ledger for rows',
    Unit.PERSON: 'Charge a ledger for persons, made by Ledger.open(..., unit="person") or snugdp ledger create --unit '
    "person",
}


@dataclass(frozen=True)
class Receipt:
    """What the ledger wrote before anything was drawn. Public.

    Parameters
    ----------
    ledger : str
        The name of the ledger.
    sequence : int
        The number of the entry.
    what : str
        What was charged for.
    cost : Cost
        What it cost.
    key : str
        The name of the release: a retry with the same key shows the same output.
    hash : str
        The hash of the ledger's record. Whoever holds the receipt can tell if that record was changed or lost.
    unit : Unit
        Whom the ledger protects: single rows, or persons with all their rows.

    Examples
    --------
    >>> import snugdp
    >>> snugdp.MemoryLedger(epsilon=1).charge(Cost(epsilon=0.25), "a count").sequence
    1
    """

    ledger: str
    sequence: int
    what: str
    cost: Cost
    key: str = ""  # names the release: a retry with the same key shows the same output
    hash: str = ""  # of the ledger's record; whoever holds a receipt can tell if that record was changed or lost
    unit: Unit = Unit.ROW  # whom the ledger protects


class Account(Protocol):
    """Whoever keeps the budget. ``charge`` must be durable when it returns, and raise when the budget is short.

    Examples
    --------
    >>> import snugdp
    >>> account: Account = snugdp.MemoryLedger(epsilon=1)
    """

    def charge(self, cost: Cost, what: str) -> Receipt:
        """Write the cost down, or refuse. Called before any noise is drawn."""
        ...


LedgerLike: TypeAlias = Account | str | os.PathLike[str]


class ShownInNotebooks:
    """An outcome that a notebook shows by the parts of the report."""

    def _repr_html_(self) -> str:
        page: str = importlib.import_module(_NOTEBOOK).outcome_html(self)
        return page


@dataclass(frozen=True)
class Released(ShownInNotebooks, Generic[T_co]):
    """The test passed: a private value, what it cost, and the receipt. It is true in conditions.

    Parameters
    ----------
    value : object
        What was released.
    cost : Cost
        What was spent.
    receipt : Receipt
        The ledger's receipt.
    certificate : object, optional
        What the test released, if it did.
    unit : Unit
        Whom it protects.

    Examples
    --------
    >>> import snugdp
    >>> outcome = snugdp.vote(["cat"] * 80, candidates=["cat", "dog"], epsilon=2)
    >>> bool(outcome), outcome.refused, outcome.value
    (True, False, 'cat')
    """

    value: T_co
    cost: Cost
    receipt: Receipt
    certificate: Any = None  # what the test released, in the calibrating form
    unit: Unit = Unit.ROW  # whom it protects
    refused: ClassVar[Literal[False]] = False

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"released {self.value!r} ({self.cost!r}, receipt {self.receipt.sequence} of {self.receipt.ledger!r})"


@dataclass(frozen=True)
class Refused(ShownInNotebooks):
    """The paper's ⊥. It costs the same as a release and gives no reason, because the reason would be private.

    It is false in conditions, and its ``value`` is None.

    Parameters
    ----------
    cost : Cost
        What was spent.
    receipt : Receipt
        The ledger's receipt.
    unit : Unit
        Whom it protects.

    Examples
    --------
    >>> import snugdp
    >>> outcome = snugdp.mode(["yes", "no"], categories=["yes", "no"], epsilon=1, delta=1e-6)
    >>> bool(outcome), outcome.refused, outcome.value
    (False, True, None)
    """

    cost: Cost
    receipt: Receipt
    unit: Unit = Unit.ROW

    value: ClassVar[None] = None
    certificate: ClassVar[None] = None
    refused: ClassVar[Literal[True]] = True

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"refused ({self.cost!r}, receipt {self.receipt.sequence} of {self.receipt.ledger!r})"


@dataclass(frozen=True, repr=False)
class NotPrivate(ShownInNotebooks, Generic[T_co]):
    """The outcome of a seeded rehearsal. It has no receipt, and no ledger accepts it.

    Parameters
    ----------
    value : object or None
        What the rehearsal gave; None if it was refused.
    refused : bool
        Whether it was refused.
    cost : Cost
        What a release would cost.
    certificate : object, optional
        What the test gave, if it did.
    unit : Unit
        Whom a release would protect.

    Examples
    --------
    >>> import snugdp
    >>> outcome = snugdp.vote(["cat"] * 80, candidates=["cat", "dog"], epsilon=2, noise=snugdp.Simulation(1))
    >>> outcome
    NOT PRIVATE('cat'; a release would cost Cost(epsilon=2, neighbours='add_remove'))
    """

    value: T_co | None
    refused: bool
    cost: Cost
    certificate: Any = None
    unit: Unit = Unit.ROW

    def __bool__(self) -> bool:
        return not self.refused

    def __repr__(self) -> str:
        shown = "refused" if self.refused else repr(self.value)
        return f"NOT PRIVATE({shown}; a release would cost {self.cost!r})"


T = TypeVar("T")
Outcome: TypeAlias = Released[T] | Refused | NotPrivate[T]
