"""What callers ask of a ledger, checked before anything is opened, written or drawn. All of it is public."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import NamedTuple, Protocol, TypeAlias

from snugdp.core.guarantee import Budget, Cost
from snugdp.core.outcome import Unit
from snugdp.ledger.composition.filter import Composition, announced_by, announced_together, pair
from snugdp.ledger.errors import LedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.state import Charge, Genesis, Part
from snugdp.ledger.parts import TablePartition, declared
from snugdp.ledger.question import Question
from snugdp.serial import costs as amounts
from snugdp.serial.costs import Json

LONGEST_NAME = 500
ONE_ROW = "one row"  # what "row" is written as, in ledgers of all versions
LONGEST_TEXT = 1_000_000


class Priced(Protocol):
    """Anything that knows its cost, such as a plan."""

    @property
    def cost(self) -> Cost:
        """What it will be charged."""
        ...


Costly: TypeAlias = Cost | Priced
Announced: TypeAlias = Budget | Cost | None


@dataclass(frozen=True)
class Wanted:
    """What the caller of ``Ledger.open`` said about the ledger; None where nothing was said."""

    dataset: str | None
    budget: Budget | Cost | None
    unit: str | None
    keep: bool
    composition: Composition | str | None = None
    users: bool | None = None

    @property
    def makes(self) -> bool:
        """Whether enough was said to make a ledger."""
        return self.dataset is not None and self.budget is not None

    def fields(self, address: str, fresh: str) -> Mapping[str, Json]:
        """Genesis, if enough was said to make a ledger."""
        if self.dataset is None or self.budget is None:
            raise LedgerError(
                f"there is no ledger at {address}. To make one, say whose data it is and what may be spent: "
                'Ledger.open(where, dataset="people", budget=Budget(1, 1e-6)), or snugdp ledger create'
            )
        return {
            "format": records.FORMAT,
            "id": fresh,
            "dataset": self.dataset,
            "unit": _unit_of_new(self.unit),
            "neighbours": self.budget.neighbours.value,
            "budget": amounts.budget_to_json(self.budget),
            "keep": self.keep,
            "composition": Composition.of(self.composition, self.budget).value,
            "users": self.users is not False,
        }

    def _way(self, born: Genesis) -> str | None:
        return None if self.composition is None else Composition.of(self.composition, born.budget).value

    def check(self, born: Genesis, address: str) -> None:
        """Whether an existing ledger is the one that was spoken of."""
        for name, said, written in (
            ("dataset", self.dataset, born.dataset),
            ("budget", self.budget, born.budget),
            ("unit", self.unit, born.unit),
            ("composition", self._way(born), born.composition.value),
            ("users", self.users, born.users),
        ):
            if said is not None and said != written:
                raise ValueError(
                    f"the ledger at {address} has {name}={written!r}, not {said!r}: leave {name} out to open it, or "
                    "make another ledger at another place"
                )
        if born.keep and not self.keep:
            raise ValueError(f"the ledger at {address} keeps outputs (keep=True): leave keep out to open it")


def genesis(
    dataset: str | None, budget: Budget | Cost | None, unit: Unit | str | None, keep: bool, *,
    composition: Composition | str | None = None, users: bool | None = None,
) -> Wanted:  # fmt: skip
    """What was said about a ledger, of the right types."""
    named = unit.value if isinstance(unit, Unit) else unit
    if budget is not None and not isinstance(budget, Budget | Cost):
        raise TypeError("budget must be a Budget, or a Cost whose parts are caps, such as Budget(1, 1e-6)")
    if isinstance(budget, Budget):
        budget = Budget(_exact(budget.epsilon), _exact(budget.delta), budget.neighbours)
    if isinstance(budget, Cost) and amounts.recorded(budget) != budget:
        raise ValueError("a part of the budget is longer than a ledger writes down: give a shorter number")
    return Wanted(
        None if dataset is None else _name(dataset, "dataset"),
        budget,
        None if named is None else ONE_ROW if named == Unit.ROW.value else _name(named, "unit"),
        bool(keep),
        composition,
        users,
    )


def charge(
    cost: Cost, what: str, name: str | None, plan: str = "", *, part: Part | None = None, within: int | None = None,
    reserve: bool = False, question: Question | None = None, announced: Announced = None,
) -> Charge:  # fmt: skip
    """A charge that can be written down; without a name it gets one that nobody else has."""
    if not isinstance(cost, Cost):
        raise TypeError("a charge is a Cost, such as Cost(epsilon=0.1)")
    if not isinstance(what, str) or not isinstance(plan, str) or max(len(what), len(plan)) > LONGEST_TEXT:
        raise TypeError(f"what and plan are texts of at most {LONGEST_TEXT} characters: what is released, and how")
    if question is not None and not isinstance(question, Question):
        raise TypeError('a question is what snugdp.ledger.question.question("what is asked", ...) gives')
    own = fresh() if name is None else key(name)
    return Charge(
        own, what, plan, amounts.recorded(cost), part, within, reserve, question, pair_of(announced), name is None
    )


def pair_of(announced: Announced) -> Cost | None:
    """What a release announces: an epsilon and a delta."""
    if announced is None or isinstance(announced, Cost):
        return announced
    if not isinstance(announced, Budget):
        raise TypeError("announced is the epsilon and the delta of the release, such as Budget(1, 1e-7)")
    return pair(announced)


class ChargeRequest(NamedTuple):
    """A cost, and what was announced for it."""

    cost: Cost
    announced: Cost | None


def each(cost: Costly | Sequence[Costly]) -> list[ChargeRequest]:
    """Costs and plans, one by one."""
    several = list(cost) if isinstance(cost, Sequence) else [cost]
    found = [_asked(one) for one in several]
    if not found or None in found:
        raise TypeError("give a Cost, a plan, or a list of these")
    return [one for one in found if one is not None]


def _asked(one: Costly) -> ChargeRequest | None:
    if isinstance(one, Cost):
        return ChargeRequest(one, None)
    cost, budget = getattr(one, "cost", None), getattr(one, "budget", None)
    return ChargeRequest(cost, pair(budget) if isinstance(budget, Budget) else None) if isinstance(cost, Cost) else None


def total(cost: Costly | Sequence[Costly], budget: Budget | Cost) -> ChargeRequest:
    """A cost, the cost of a plan, or the sum of several, and what they announce together."""
    asked = each(cost)
    whole = reduce(add, (one.cost for one in asked))
    if len(asked) == 1 or isinstance(budget, Cost):
        return ChargeRequest(whole, asked[0].announced if len(asked) == 1 else None)
    pairs = [(one.cost, one.announced or announced_by(one.cost, budget)) for one in asked]
    return ChargeRequest(whole, announced_together(pairs, budget))


def fresh() -> str:
    """A name that nobody else has. It is public, and no noise."""
    return secrets.token_hex(16)


def key(text: str) -> str:
    """The name of one release."""
    return _name(text, "key")


def partition(column: str, parts: Sequence[str | int] | int) -> TablePartition:
    """A declaration of disjoint parts. A hash gets a key of its own, which is public and no noise."""
    made = declared(_name(column, "the column of a partition"), parts, fresh())
    for part in made.parts:
        _name(part, "a part")
    return made


def outcome(body: str | None) -> str:
    """What a stored output is called: "refused" if its JSON says so."""
    if body is None:
        return "consumed"
    if not isinstance(body, str) or "\0" in body or any("\ud800" <= c <= "\udfff" for c in body if not c.isascii()):
        raise ValueError("an output is stored as text without NUL and surrogates; the charge stands")
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return "released"
    return "refused" if isinstance(read, dict) and read.get("refused") is True else "released"


def _unit_of_new(label: str | None) -> str:
    """Whom a new ledger protects. Older ones may have another text there, which stands for a row."""
    if label is None or label == ONE_ROW:
        return ONE_ROW
    if label in {unit.value for unit in Unit}:
        return label
    raise ValueError(
        'unit says whom the ledger protects: "row" (each row stands for somebody else), "person" (all rows of a person '
        'together: releases then name the column of identifiers, such as person="customer_id") or "teacher"'
    )


def _name(text: str, what: str) -> str:
    if not isinstance(text, str) or not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise ValueError(f"{what} must be a text of 1 to {LONGEST_NAME} printable characters")
    return text


def _exact(value: Fraction) -> Fraction:
    if amounts.short(value) != value:
        raise ValueError("the budget is longer than a ledger writes down: give a shorter number, such as 0.5")
    return value
