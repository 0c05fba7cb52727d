"""What a history amounts to. Every rule that makes a record legal is here, for old records and for new ones alike.

A record is judged first (``judge``: nothing changes) and folded in later (``take``, after it is durable).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import TypeAlias

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.ledger import records
from snugdp.ledger.errors import BudgetExceededError, KeyConflictError, TamperedLedgerError
from snugdp.ledger.limits import Box, Limits, Remaining, legal, within
from snugdp.ledger.question import Question
from snugdp.ledger.records import Record, Row
from snugdp.serial import costs
from snugdp.serial.costs import Json

Part: TypeAlias = tuple[str, str]  # the name of a partition, and of one of its parts
Fixed: TypeAlias = Callable[[Cost, Cost], Limits]
STATES = ("released", "refused", "consumed")
_HEX = frozenset("0123456789abcdef")
_NONE: Mapping[str, Mapping[str, Cost]] = MappingProxyType({})
_NO_TOP: Mapping[str, Cost] = MappingProxyType({})


@dataclass(frozen=True)
class Genesis:
    """The first record: what may be spent on whom."""

    id: str
    dataset: str
    unit: str
    neighbours: Neighbours
    budget: Budget | Cost
    keep: bool
    time: str


@dataclass(frozen=True)
class Charge:
    """A charge or a reservation, as it was asked for."""

    key: str
    what: str
    plan: str
    cost: Cost
    part: Part | None = None
    within: int | None = None  # the reservation that paid for it
    reserve: bool = False
    question: Question | None = None

    def same(self, other: Charge) -> bool:
        """Whether both are one release: the words of a question, and of the plan for it, may be of another version."""
        if self.question is None or other.question is None:
            return self == other
        return self._asked() == other._asked()

    def _asked(self) -> tuple[object, ...]:
        digest = None if self.question is None else self.question.digest
        return self.key, digest, self.cost, self.part, self.within, self.reserve


@dataclass(frozen=True)
class Settled:
    """What became of a charge."""

    seq: int  # of the record of the outcome; its row holds the body
    state: str


@dataclass(frozen=True)
class Judged:
    """A record that is legal now, and what folding it in does."""

    record: Record
    effect: Callable[[], None]


@dataclass(frozen=True)
class Tally:
    """What was spent on the whole and on every part.

    Guarantee: a row lies in at most one part of each partition, so whichever row is added or removed, the charges that
    could see it are the whole ones and those of one part of each partition. ``total`` dominates all of these sums.
    """

    whole: Cost | None = None
    parts: Mapping[str, Mapping[str, Cost]] = field(default_factory=lambda: _NONE)
    top: Mapping[str, Cost] = field(default_factory=lambda: _NO_TOP)  # of each partition, part by part the largest
    sum: Cost | None = None

    def total(self, neighbours: Neighbours) -> Cost:
        """The composed total."""
        return Cost(neighbours=neighbours) if self.sum is None else self.sum

    def after(self, cost: Cost, part: tuple[str, str] | None) -> Tally:
        """The tally after one more charge. Parts only grow, so the largest needs no look at the others."""
        if part is None:
            whole = cost if self.whole is None else costs.added(self.whole, cost)
            if not self.top:
                return Tally(whole, self.parts, self.top, whole)
            return Tally(whole, self.parts, self.top, self._sum(whole, self.top))
        name, which = part
        of_name = self.parts.get(name, {})
        grown = costs.added(of_name[which], cost) if which in of_name else cost
        tops = {**self.top, name: costs.largest([grown, *([self.top[name]] if name in self.top else [])])}
        parts = {**self.parts, name: {**of_name, which: grown}}
        return Tally(self.whole, parts, tops, self._sum(self.whole, tops))

    @staticmethod
    def _sum(whole: Cost | None, tops: Mapping[str, Cost]) -> Cost:
        several = [*([] if whole is None else [whole]), *(tops[name] for name in sorted(tops))]
        return reduce(costs.added, several)


@dataclass
class State:
    """Everything that the records so far mean. One per open ledger; ``book`` guards it by its lock."""

    genesis: Genesis | None = None
    hashes: list[str] = field(default_factory=list)
    charges: dict[int, Charge] = field(default_factory=dict)
    times: dict[int, str] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    settled: dict[int, Settled] = field(default_factory=dict)
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: dict[int, Cost] = field(default_factory=dict)  # of each reservation
    limits: Limits | None = None  # of the budget in genesis; its boxes are fixed by a charge
    tally: Tally = field(default_factory=Tally)

    # -- what it says

    @property
    def seq(self) -> int:
        """The number of the newest record; -1 if there is none."""
        return len(self.hashes) - 1

    @property
    def head(self) -> str:
        """The hash of the newest record."""
        return self.hashes[-1] if self.hashes else ""

    @property
    def spent(self) -> Cost:
        """The composition of everything charged."""
        return self.tally.total(self.born.neighbours)

    @property
    def remaining(self) -> Remaining:
        """The largest charges that are still accepted."""
        return self._limits.remaining(self.spent)

    @property
    def born(self) -> Genesis:
        """Genesis."""
        if self.genesis is None:
            raise TamperedLedgerError("the ledger is empty: its first record is missing")
        return self.genesis

    @property
    def _limits(self) -> Limits:
        return self.limits or Limits.open(self.born.budget)

    # -- reading history

    def read(self, row: Row) -> None:
        """Check the next row of the history, with the rules that a new one has to obey, and fold it in."""
        record = records.read(row, self.head, self.seq + 1)
        try:
            judged = self.judge(record)
        except (BudgetExceededError, KeyConflictError):
            raise TamperedLedgerError(f"record {record.seq} of the ledger breaks its own limits") from None
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError):
            raise TamperedLedgerError(f"record {record.seq} of the ledger has an unknown form") from None
        self.take(judged)

    # -- making new records

    def draft(self, kind: str, fields: Mapping[str, Json], stamp: Mapping[str, str]) -> Judged:
        """The next record, judged by the same rules as history."""
        return self.judge(records.write(self.head, self.seq + 1, kind, {**fields, **stamp}))

    def charged(self, charge: Charge) -> Mapping[str, Json]:
        """The fields of a new charge, with the total after it and, if it fixes the limits, with these."""
        limits, total, _ = self._after(charge, self._fixed_by)
        fields = {
            "key": charge.key,
            "what": charge.what,
            "plan": charge.plan,
            "cost": costs.cost_to_json(charge.cost),
            "part": None if charge.part is None else list(charge.part),
            "total": costs.total_to_json(total),
            "limits": None if limits is self._limits else _boxes_to_json(limits),
        }
        if charge.reserve:
            return fields
        asked = None if charge.question is None else charge.question._asdict()
        return fields | {"within": charge.within, "question": asked}

    def found(self, charge: Charge) -> int | None:
        """The number of the charge with this key, if it is the same release."""
        seq = self.keys.get(charge.key)
        if seq is None:
            return None
        if not self.charges[seq].same(charge):
            used, way_out = _other(self.charges[seq], charge)
            raise KeyConflictError(
                f"the key {charge.key!r} was used for {used}: a key names one release, with one question, one cost and "
                f"one part of the data. Nothing was charged or drawn. {way_out}, or use another key"
            )
        return seq

    def affords(self, charge: Charge) -> bool:
        """Whether this charge would be accepted now."""
        try:
            self._after(charge, self._fixed_by)
        except BudgetExceededError:
            return False
        return True

    def payable(self, charges: Sequence[Charge]) -> int:
        """How many of these charges would be accepted, one after the other, up to the first that is not."""
        ahead = replace(self, used=dict(self.used))  # all that the rules change
        for number, charge in enumerate(charges):
            try:
                ahead.limits, _, then = ahead._after(charge, ahead._fixed_by)
            except BudgetExceededError:
                return number
            then()
        return len(charges)

    def remaining_after(self, charge: Charge) -> Remaining | None:
        """What would remain after this charge; None if it would not be accepted."""
        try:
            limits, total, _ = self._after(charge, self._fixed_by)
        except BudgetExceededError:
            return None
        return limits.remaining(total)

    # -- the rules

    def judge(self, record: Record) -> Judged:
        """Whether a record may come next; raises if not, and changes nothing."""
        if (record.kind == "genesis") != (self.genesis is None):
            raise ValueError("genesis is the first record, and only the first")
        rule: Callable[[Record], Callable[[], None]] = getattr(self, f"_{record.kind}")
        return Judged(record, rule(record))

    def take(self, judged: Judged) -> None:
        """Fold in a record that was judged legal as the next one."""
        if judged.record.seq != self.seq + 1:
            raise TamperedLedgerError("a record was judged for another place in the history")
        judged.effect()
        self.hashes.append(judged.record.hash)

    def _genesis(self, record: Record) -> Callable[[], None]:
        fields = record.fields
        if fields["format"] not in records.FORMATS or not _is_hex(fields["id"], 32) or type(fields["keep"]) is not bool:
            raise ValueError("genesis has a format, an id and says what is kept")
        neighbours = Neighbours(fields["neighbours"])
        budget = costs.budget_from_json(fields["budget"], neighbours)
        genesis = Genesis(
            fields["id"], _text(fields["dataset"]), _text(fields["unit"]), neighbours, budget, fields["keep"],
            fields["time"],
        )  # fmt: skip
        limits = Limits.open(budget)

        def effect() -> None:
            self.genesis, self.limits = genesis, limits

        return effect

    def _partition(self, record: Record) -> Callable[[], None]:
        name, parts = _text(record.fields["name"]), tuple(_texts(record.fields["parts"]))
        if self.born.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError("parts are for the add_remove relation: a replaced row can move from one part to another")
        if name in self.partitions or not name or not parts or not all(parts) or len(set(parts)) < len(parts):
            raise ValueError("a partition has a name of its own and different parts, each with a name")

        def effect() -> None:
            self.partitions[name] = parts

        return effect

    def _charge(self, record: Record) -> Callable[[], None]:
        fields = record.fields
        reserve = record.kind == "reserve"
        part, inside = fields["part"], None if reserve else fields["within"]
        charge = Charge(
            _text(fields["key"]), _text(fields["what"]), _text(fields["plan"]),
            costs.cost_from_json(fields["cost"], self.born.neighbours),
            None if part is None else _pair(part), inside, reserve, _question(fields.get("question")),
        )  # fmt: skip
        if not charge.key or charge.key in self.keys or (inside is not None and type(inside) is not int):
            raise ValueError("a key is used once")
        limits, total, then = self._after(charge, lambda before, _: self._fixed_in(fields["limits"], before))
        if costs.total_to_json(total) != fields["total"]:
            raise ValueError("the total is not the sum of the charges")

        def effect() -> None:
            self.charges[record.seq], self.keys[charge.key] = charge, record.seq
            self.times[record.seq] = fields["time"]
            self.limits = limits
            if reserve:
                self.used[record.seq] = Cost(neighbours=self.born.neighbours)
            then()

        return effect

    _reserve = _charge

    def _outcome(self, record: Record) -> Callable[[], None]:
        of, state, body = record.fields["of"], record.fields["state"], record.fields["body"]
        if type(of) is not int or of not in self.charges or self.charges[of].reserve or of in self.settled:
            raise ValueError("an outcome belongs to one charge, which has no other")
        if state not in STATES or (state == "consumed") != (body is None) or not (body is None or _is_hex(body, 64)):
            raise ValueError("an outcome is released, refused or consumed")
        if body is not None and not self.born.keep:
            raise ValueError("this ledger keeps no outputs")
        settled = Settled(record.seq, state)

        def effect() -> None:
            self.settled[of] = settled

        return effect

    def _after(self, charge: Charge, fixed: Fixed) -> tuple[Limits, Cost, Callable[[], None]]:
        """The limits and the total after a charge, and how to get there; raises if it is not covered.

        ``fixed``: the limits by which a charge is judged that takes the total from the one cost to the other.
        """
        neighbours = self.born.neighbours
        neighbours.require(charge.cost.neighbours)
        self.check_part(charge.part)
        before = self.spent
        if charge.within is not None:
            reserved, used = charge.within, self._used_after(charge, charge.within)
            return fixed(before, before), before, lambda: self.used.update({reserved: used})
        tally = self.tally.after(charge.cost, charge.part)
        total = tally.total(neighbours)
        limits = fixed(before, total)
        if not limits.covers(total):
            raise BudgetExceededError(
                f"the budget does not cover this release ({charge.what}): it needs {charge.cost!r}, the ledger has "
                f"spent {before!r} of {self.born.budget!r}, left: {self.remaining}. Ask for less epsilon or delta"
            )

        def then() -> None:
            self.tally = tally

        return limits, total, then

    def _fixed_by(self, before: Cost, total: Cost) -> Limits:
        return self._limits if before == total else self._limits.after(before, total)

    def _fixed_in(self, boxes: Json, before: Cost) -> Limits:
        """The limits that history says a charge fixed. They must keep the budget; how they were found is no matter."""
        budget = self.born.budget
        if boxes is None:
            return self._limits
        fixed = _boxes_from_json(boxes, self.born.neighbours)
        if isinstance(budget, Cost) or self._limits.boxes or not fixed or not legal(budget, fixed, before):
            raise ValueError("the limits exceed the budget, or were fixed before")
        return Limits(budget, fixed)

    def check_part(self, part: Part | None) -> None:
        """Raise unless this part was declared."""
        if part is not None and part[1] not in self.partitions.get(part[0], ()):
            raise ValueError(
                f"there is no part {part[1]!r} of {part[0]!r} in this ledger: declare it with "
                "ledger.partition(name, parts) before"
            )

    def _used_after(self, charge: Charge, reserved: int) -> Cost:
        paid = self.charges.get(reserved)
        if paid is None or not paid.reserve or paid.part != charge.part or charge.reserve:
            raise ValueError("a charge within a reservation needs one, of the same part")
        used = costs.added(self.used[reserved], charge.cost)
        if not within(used, paid.cost):
            raise BudgetExceededError(
                f"the reservation does not cover this release ({charge.what}): it needs {charge.cost!r}, of "
                f"{paid.cost!r} it has used {self.used[reserved]!r}. Every part of the cost has its own limit"
            )
        return used


def _other(old: Charge, new: Charge) -> tuple[str, str]:
    """What a key was used for, in words that show the difference, and how to see what came of it."""
    here = "Repeat the first question to see its outcome"
    if replace(old, what=new.what, plan=new.plan, question=new.question) == new and new.question is not None:
        if old.question is not None:
            return f"another question ({old.question}; now: {new.question})", here
        return (
            f"a release ({old.what}) by an older version of snugdp, or by hand: its question cannot be compared",
            "Repeat it with that version to see its outcome",
        )
    return f"another release ({old.what})", here


def _boxes_to_json(limits: Limits) -> Json:
    return [{"limit": costs.cost_to_json(box.limit), "order": str(box.order)} for box in limits.boxes]


def _boxes_from_json(boxes: Json, neighbours: Neighbours) -> tuple[Box, ...]:
    if not isinstance(boxes, list) or any(box.keys() != {"limit", "order"} for box in boxes):
        raise ValueError("limits are a list of boxes")
    return tuple(Box(costs.cost_from_json(box["limit"], neighbours), costs.amount(box["order"])) for box in boxes)


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is text")
    return value


def _question(value: Json) -> Question | None:
    if value is None:
        return None
    if value.keys() != {"words", "digest"} or not _is_hex(value["digest"], 32):
        raise ValueError("a question has words and a digest")
    return Question(_text(value["words"]), value["digest"])


def _texts(value: Json) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("names are a list")
    return [_text(one) for one in value]


def _pair(value: Json) -> Part:
    name, part = _texts(value)
    return name, part


def _is_hex(value: Json, length: int) -> bool:
    return isinstance(value, str) and len(value) == length and set(value) <= _HEX
