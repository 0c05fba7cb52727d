"""What a history amounts to. Every rule that makes a record legal is here, for old records and for new ones alike.

A record is judged first (``judge``: nothing changes) and folded in later (``take``, after it is durable). Of what lies
before the newest checkpoint the state holds only what the checkpoint says; single records are in the ``archive``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple, Protocol, TypeAlias

from snugdp.core.guarantee import Budget, Cost, Neighbours
from snugdp.core.outcome import Unit
from snugdp.ledger.composition.filter import (
    Composition,
    Filter,
    Spent,
    as_gaussian,
    counted,
    is_gaussian_of,
    is_pure,
    satisfies,
)
from snugdp.ledger.composition.limits import Box, Limits, Remaining, legal, within
from snugdp.ledger.composition.tally import Tally
from snugdp.ledger.errors import BudgetExceededError, KeyConflictError, TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.records import Record, Row
from snugdp.ledger.history.voids import Void, Voids, digest_of
from snugdp.ledger.parts import TablePartition
from snugdp.ledger.question import Question
from snugdp.serial import costs
from snugdp.serial.costs import Json

EVERY = 256  # records from one checkpoint to the next
FINGERPRINT = 16  # hexadecimal digits by which a checkpoint knows a key
Part: TypeAlias = tuple[str, str]  # the name of a partition, and of one of its parts
Fixed: TypeAlias = Callable[[Spent, Spent], Filter]
STATES = ("released", "refused", "consumed")
_FIRST_WITH_CHECKPOINTS = 3  # format


class VoidedStartError(Exception):
    """The checkpoint from which a history was read is itself void. It never leaves the ledger."""


class DamagedPastError(TamperedLedgerError):
    """What lies before the newest checkpoint was changed or lost, so that a later record cannot be judged."""


class CheckpointDueError(Exception):
    """A checkpoint has to be written before the next record. It never leaves the ledger."""


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
    format: int
    composition: Composition
    users: bool  # whether charges say who made them


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
    announced: Cost | None = field(default=None, compare=False)  # an epsilon and a delta that the release satisfies
    fresh: bool = field(default=False, compare=False)  # whether nobody else can have this key
    composed_as: Cost | None = field(default=None, compare=False)  # the Gaussian cost by which a pure one is composed

    @property
    def title(self) -> str:
        """What was asked, with the column or the target where it has a name; else what was released."""
        return self.what if self.question is None else self.question.words

    def counted_as(self, announced: Cost, composed_as: Cost | None) -> Charge:
        """The same that counts with these. Every charge is copied so: ``replace`` takes five times as long."""
        if announced is self.announced and composed_as is None:
            return self
        copy = object.__new__(Charge)
        copy.__dict__.update(self.__dict__, announced=announced, composed_as=composed_as)
        return copy

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
class Adoption:
    """Somebody has said that this copy is the ledger from here on: after a move, a restore, or on a network's disk."""

    seq: int
    by: str
    reason: str
    place: str  # where the ledger was then
    file_system: str | None  # one without locks among machines, if it was allowed
    lost: tuple[tuple[int, str], ...]  # records that anchors remembered and that are not in this history
    time: str

    @property
    def words(self) -> str:
        """When, by whom and why, and what was known to be lost."""
        lost = f"; lost: up to record {max(self.lost)[0]} of another copy" if self.lost else ""
        return f"{self.time[:16].replace('T', ' ')} by {self.by}: {self.reason} (record {self.seq}{lost})"


class Illegal(NamedTuple):
    """A row that continues the chain and is no legal record."""

    row: Row
    why: TamperedLedgerError


class Judged(NamedTuple):
    """A record that is legal now, and what folding it in does."""

    record: Record
    effect: Callable[[], None]


class After(NamedTuple):
    """What a charge leads to: the filter by which it is judged, the total after it, and how to get there."""

    filter: Filter
    total: Spent
    then: Callable[[], None]


@dataclass(frozen=True)
class Reservation:
    """What was paid for in advance, for which part, and what of it is used."""

    cost: Cost
    part: Part | None
    used: Cost


class Archive(Protocol):
    """The records before the newest checkpoint: looked up one by one, each proved to be in the history."""

    def ends_with(self, newest: tuple[int, str] | None, voids: Voids) -> None:
        """The newest checkpoint, which is known to be in the history, and what is void."""
        ...

    def find(self, key: str) -> int | None:
        """The number of the first charge with this key."""
        ...

    def record(self, seq: int) -> Record:
        """The record of this number, which is not void."""
        ...

    def settled(self, seq: int) -> Settled | None:
        """What became of the charge of this number: its first outcome."""
        ...


@dataclass
class State:
    """Everything that the records so far mean. One per open ledger; ``book`` guards it by its lock.

    ``whole``: whether it holds every record, for ``verify``; else those since the newest checkpoint.
    """

    whole: bool = False
    archive: Archive | None = None
    genesis: Genesis | None = None
    seq: int = -1  # of the newest legal record
    head: str = ""  # its hash
    first: str = ""  # the hash of genesis
    checkpoint: tuple[int, str] | None = None  # the newest: its number and its hash
    hashes: dict[int, str] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    settled: dict[int, Settled] = field(default_factory=dict)
    index: list[str | int | None] = field(
        default_factory=list
    )  # since the checkpoint: keys' fingerprints, what settled
    count: int = 0  # of charges and reservations
    partitions: dict[str, TablePartition] = field(default_factory=dict)
    reserved: dict[int, Reservation] = field(default_factory=dict)
    adoptions: list[Adoption] = field(default_factory=list)
    voids: Voids = field(default_factory=Voids)
    illegal: list[Illegal] = field(default_factory=list)  # rows after the newest legal record: nobody goes on from them
    started: int = -1  # the checkpoint from which it was read
    filter: Filter | None = None  # of the budget in genesis; its limits are fixed by a charge
    composed: Tally = field(default_factory=Tally)
    announced: Tally = field(default_factory=Tally)

    # -- what it says

    @property
    def total(self) -> Spent:
        """What was spent, in the ways that this ledger adds up."""
        neighbours = self.born.neighbours
        return Spent(self.composed.total(neighbours), self.announced.total(neighbours))

    @property
    def spent(self) -> Cost:
        """Everything charged: what was announced, added up; or the costs, composed."""
        return self._told(self.total)

    def _told(self, total: Spent) -> Cost:
        return total.composed if self.born.composition.composes else total.announced

    @property
    def remaining(self) -> Remaining:
        """The largest charges that are still accepted."""
        return self._filter.remaining(self.total)

    @property
    def born(self) -> Genesis:
        """Genesis."""
        if self.genesis is None:
            raise TamperedLedgerError("the ledger is empty: its first record is missing")
        return self.genesis

    @property
    def _filter(self) -> Filter:
        return self.filter or Filter.open(self.born.budget, self.born.composition)

    # -- single records, old ones too

    def seq_of(self, charge: Charge) -> int | None:
        """The number of the charge with the key of this one."""
        seq = self.keys.get(charge.key)
        if charge.fresh or self.checkpoint is None or self.whole:
            return seq
        earlier = None if (past := self._past) is None else past.find(charge.key)
        return seq if earlier is None else earlier

    def charge_at(self, seq: int) -> Charge | None:
        """The charge of this number."""
        past = self._past_at(seq)
        if past is None:
            return self.charges.get(seq)
        record = past.record(seq)
        return charge_in(record, self.born.neighbours) if record.kind in ("charge", "reserve") else None

    def settled_at(self, seq: int) -> Settled | None:
        """What became of the charge of this number."""
        past = self._past_at(seq)
        return (None if past is None else past.settled(seq)) or self.settled.get(seq)

    def hash_at(self, seq: int) -> str | None:
        """The hash of a record; None if there is none of this number, or if what is there is void."""
        past = self._past_at(seq)
        return self.hashes.get(seq) if past is None else past.record(seq).hash

    def _past_at(self, seq: int) -> Archive | None:
        """The archive, if a record, and not one that is void, lies there: before the newest checkpoint."""
        archived = not self.whole and self.checkpoint is not None and 0 <= seq < self.checkpoint[0]
        return self._past if archived and self.voids.at(seq) is None else None

    @property
    def _past(self) -> Archive | None:
        if self.archive is not None:
            self.archive.ends_with(self.checkpoint, self.voids)
        return self.archive

    # -- reading history

    def read_all(self, rows: Iterable[Row]) -> None:
        """Read further rows; ``require_legal`` says whether they all counted.

        A row that continues the chain and is no legal record is put aside, and all after it, until a void of them.
        """
        for row in rows:
            try:
                self.read(row)
            except DamagedPastError:
                raise
            except TamperedLedgerError as why:
                records.check_hash(row, self._next_seq)
                if self.genesis is None or not records.names_before(row, self._tail):
                    raise
                self.illegal.append(Illegal(row, why))

    def put_aside(self) -> dict[str, Json]:
        """Which rows a void has to name now, and what is before them."""
        last, seen = self.seq + len(self.illegal), digest_of(one.row.hash for one in self.illegal)
        return {"before": self.head, "first": self.seq + 1, "last": last, "digest": seen}

    def require_legal(self, where: str) -> None:
        """Raise if the history ends with rows that are no legal records."""
        if self.illegal:
            raise TamperedLedgerError(
                f"{self.illegal[0].why}. The ledger cannot go on after it. If a newer version of snugdp wrote it, "
                "upgrade; if it was written by hand, the owner can void it, for the record: "
                f'snugdp ledger void {where} --reason "..."'
            )

    @property
    def _next_seq(self) -> int:
        return self.seq + len(self.illegal) + 1

    @property
    def _tail(self) -> str:
        """The hash of the newest row."""
        return self.illegal[-1].row.hash if self.illegal else self.head

    def read(self, row: Row) -> None:
        """Check the next row of the history, with the rules that a new one has to obey, and fold it in."""
        record = records.read(row, self._tail, self._next_seq)
        try:
            judged = self.judge(record)
        except (BudgetExceededError, KeyConflictError):
            raise TamperedLedgerError(f"record {record.seq} of the ledger breaks its own limits") from None
        except RecursionError:
            raise records.too_deep(record.seq) from None
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError):
            raise TamperedLedgerError(f"record {record.seq} of the ledger has an unknown form") from None
        self.take(judged)

    # -- making new records

    def draft(self, kind: str, fields: Mapping[str, Json], stamp: Mapping[str, str]) -> Judged:
        """The next record, judged by the same rules as history; ``CheckpointDueError`` if a checkpoint comes first."""
        return self.judge(self._next(kind, fields, stamp))

    def _next(self, kind: str, fields: Mapping[str, Json], stamp: Mapping[str, str]) -> Record:
        if self.due and kind != "checkpoint":
            raise CheckpointDueError
        return records.write(self._tail, self._next_seq, kind, {**fields, **stamp})

    def charged(self, charge: Charge, stamp: Mapping[str, str]) -> Judged:
        """A new charge or reservation. What was found for its draft is what ``judge`` would find for its record, which
        is asked again only where limits are fixed.
        """
        charge = self.complete(charge)
        after = self._after(charge, self._fixed_by)
        fields = self._fields(charge, after.filter, after.total)
        record = self._next("reserve" if charge.reserve else "charge", fields, stamp)
        self._check_legible(charge, record)
        if fields["limits"] is not None or charge.key in self.keys:
            return self.judge(record)
        return Judged(record, self._charging(record.seq, charge, after))

    def _fields(self, charge: Charge, judged: Filter, total: Spent) -> Mapping[str, Json]:
        """Of a record: the charge, the total after it and, if it fixes the limits, these."""
        limits, old = judged.tight, self._filter.tight
        fields = {
            "key": charge.key,
            "what": charge.what,
            "plan": charge.plan,
            "cost": (cost := costs.cost_to_json(charge.cost)),
            "announced": cost if charge.announced is charge.cost else _announced_to_json(charge.announced),
            "part": None if charge.part is None else list(charge.part),
            "total": costs.total_to_json(self._told(total)),
            "limits": None if limits is None or old is None or limits.boxes == old.boxes else _boxes_to_json(limits),
            "user": records.account_name() if self.born.users else None,
        }
        if charge.composed_as is not None:
            fields["composed_as"] = costs.cost_to_json(charge.composed_as)
        if charge.reserve:
            return fields
        fields["question"] = None if charge.question is None else charge.question._asdict()
        fields["within"] = charge.within
        return fields

    def _check_legible(self, charge: Charge, record: Record) -> None:
        """What is written must be read again: a receipt for a record that means nothing could be had for nothing, once
        that is void. One text has one meaning, if it has any.
        """
        if not charge.key or not (charge.within is None or type(charge.within) is int):
            raise ValueError("a charge has a key, and the number of a reservation or none")
        charge_in(record, self.born.neighbours)

    def complete(self, charge: Charge) -> Charge:
        """The charge with an epsilon and a delta, where it needs them and has none."""
        born = self.born
        budget = born.budget
        if charge.within is not None or not born.composition.adds:
            return charge
        born.neighbours.require(charge.cost.neighbours)
        derived = counted(charge.cost, charge.announced, budget) if isinstance(budget, Budget) else None
        if derived is None:
            raise BudgetExceededError(
                f"the budget does not cover this release ({charge.what}): a release of {charge.cost.words} has no "
                "epsilon at a hundredth of this ledger's delta. Announce its epsilon and delta, as in "
                "charge(..., announced=Budget(1, 1e-7))"
            )
        both = born.composition is Composition.BOTH and not charge.reserve and isinstance(budget, Budget)
        return charge.counted_as(derived, as_gaussian(charge.cost, budget) if both else None)

    def found(self, charge: Charge) -> int | None:
        """The number of the charge with this key, if it is the same release."""
        seq = self.seq_of(charge)
        if seq is None:
            return None
        known = self.charge_at(seq)
        if known is None or not known.same(charge):
            used, way_out = ("another release", "") if known is None else _other(known, charge)
            raise KeyConflictError(
                f"the key {charge.key!r} was used for {used}: a key names one release, with one question, one cost and "
                f"one part of the data. Nothing was charged or drawn. {way_out}, or use another key"
            )
        return seq

    def affords(self, charge: Charge) -> bool:
        """Whether this charge would be accepted now."""
        try:
            self._after(self.complete(charge), self._fixed_by)
        except BudgetExceededError:
            return False
        return True

    def payable(self, charges: Sequence[Charge]) -> int:
        """How many of these charges would be accepted, one after the other, up to the first that is not."""
        ahead = replace(self, reserved=dict(self.reserved))  # all that the rules change
        for number, charge in enumerate(charges):
            try:
                after = ahead._after(ahead.complete(charge), ahead._fixed_by)
            except BudgetExceededError:
                return number
            ahead.filter = after.filter
            after.then()
        return len(charges)

    def remaining_after(self, charge: Charge) -> Remaining | None:
        """What would remain after this charge; None if it would not be accepted."""
        try:
            after = self._after(self.complete(charge), self._fixed_by)
        except BudgetExceededError:
            return None
        return after.filter.remaining(after.total)

    # -- the rules

    def judge(self, record: Record) -> Judged:
        """Whether a record may come next; raises if not, and changes nothing."""
        if (record.kind == "genesis") != (self.genesis is None):
            raise ValueError("genesis is the first record, and only the first")
        if record.kind == "void" and record.fields["first"] <= self.started:
            raise VoidedStartError  # before all else: a forged checkpoint may say that another one comes next
        if self.genesis is not None and not self._in_turn(record):
            raise ValueError("checkpoints come in their turn")
        if self.illegal and record.kind != "void":
            raise ValueError("after an invalid record only a void of it is valid")
        rule: Callable[[Record], Callable[[], None]] = getattr(self, f"_{record.kind}")
        return Judged(record, rule(record))

    def take(self, judged: Judged) -> None:
        """Fold in a record that was judged legal as the next one."""
        if judged.record.seq != self._next_seq:
            raise TamperedLedgerError("a record was judged for another place in the history")
        record = judged.record
        judged.effect()
        self.hashes[record.seq] = self.head = record.hash
        self.seq = record.seq
        if record.kind == "checkpoint":
            self._archive(record)
        elif record.seq:
            self.index += [*(None for _ in self.illegal), _mark(record)]
        self.illegal = []

    # -- checkpoints

    @property
    def due(self) -> bool:
        """Whether a checkpoint comes next."""
        return self.genesis is not None and not self.illegal and (self.seq + 1) % EVERY == 0

    def _in_turn(self, record: Record) -> bool:
        """Ledgers of old formats may have checkpoints, and later ones must; all in the same places."""
        if record.kind == "checkpoint":
            return self.due
        return not self.due or self.born.format < _FIRST_WITH_CHECKPOINTS

    def summary(self) -> Mapping[str, Json]:
        """The fields of a checkpoint: all that counts of the records before it."""
        tight = self._filter.tight
        return {
            "genesis": self.first,
            "earlier": None if self.checkpoint is None else list(self.checkpoint),
            "index": list(self.index),
            "charges": self.count,
            "adoptions": [adoption_to_json(one) for one in self.adoptions],
            **({"voids": [one.to_json() for one in self.voids]} if self.voids else {}),
            "spent": {
                "composed": self.composed.to_json(),
                "announced": self.announced.to_json(),
                "partitions": {name: one.to_json() for name, one in self.partitions.items()},
                "limits": None if tight is None else _boxes_to_json(tight),
                "reserved": {str(seq): _reservation_to_json(one) for seq, one in self.reserved.items()},
            },
        }

    def _checkpoint(self, record: Record) -> Callable[[], None]:
        summary = self.summary()
        if ("voids" in record.fields) != ("voids" in summary):
            raise ValueError("a checkpoint says which records are void")
        if any(record.fields[name] != value for name, value in summary.items()):
            raise ValueError("a checkpoint says what the records before it amount to")

        def effect() -> None:
            self.checkpoint = (record.seq, record.hash)

        return effect

    def _archive(self, record: Record) -> None:
        """From a checkpoint on only the records after it are held, unless all are."""
        self.index, self.keys = [], {}
        if not self.whole:
            self.hashes = {record.seq: record.hash}
            self.charges, self.settled = {}, {}

    @classmethod
    def resumed(cls, genesis: Row, row: Row) -> State:
        """The state at a checkpoint, which the caller has yet to find in the history that was anchored."""
        state = cls()
        state.read(genesis)
        record = records.read(row, None, row.seq)
        if record.kind != "checkpoint" or record.fields["genesis"] != genesis.hash:
            raise TamperedLedgerError(f"record {row.seq} of the ledger is no checkpoint of it")
        try:
            state._resume(record)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError):
            raise TamperedLedgerError(f"record {record.seq} of the ledger has an unknown form") from None
        return state

    def _resume(self, record: Record) -> None:
        neighbours, spent = self.born.neighbours, record.fields["spent"]
        self.composed = Tally.from_json(spent["composed"], neighbours)
        self.announced = Tally.from_json(spent["announced"], neighbours)
        self.partitions = {_text(name): TablePartition.from_json(one) for name, one in spent["partitions"].items()}
        self.reserved = {int(seq): _reservation_from_json(one, neighbours) for seq, one in spent["reserved"].items()}
        tight = self._filter.tight
        if tight is not None:
            self.filter = self._filter.with_limits(Limits(tight.budget, _boxes_from_json(spent["limits"], neighbours)))
        self.adoptions = [_adoption_from_json(one) for one in record.fields["adoptions"]]
        self.voids = Voids(map(Void.from_json, record.fields.get("voids", [])))
        self.started = record.seq
        self.count, self.seq, self.head = record.fields["charges"], record.seq, record.hash
        self.checkpoint = (record.seq, record.hash)
        self._archive(record)

    def _genesis(self, record: Record) -> Callable[[], None]:
        fields = record.fields
        if (
            fields["format"] not in records.FORMATS
            or not records.is_hex(fields["id"], 32)
            or type(fields["keep"]) is not bool
        ):
            raise ValueError("genesis has a format, an id and says what is kept")
        neighbours = Neighbours(fields["neighbours"])
        budget = costs.budget_from_json(fields["budget"], neighbours)
        composition = Composition.of(_text(fields.get("composition", Composition.TIGHT.value)), budget)
        genesis = Genesis(
            fields["id"], _text(fields["dataset"]), _text(fields["unit"]), neighbours, budget, fields["keep"],
            fields["time"], fields["format"], composition, _is_true(fields.get("users", True)),
        )  # fmt: skip
        opened = Filter.open(budget, composition)

        def effect() -> None:
            self.genesis, self.filter, self.first = genesis, opened, record.hash

        return effect

    def _partition(self, record: Record) -> Callable[[], None]:
        name, partition = _text(record.fields["name"]), TablePartition.from_json(dict(record.fields))
        if self.born.neighbours is not Neighbours.ADD_REMOVE:
            raise ValueError("parts are for the add_remove relation: a replaced row can move from one part to another")
        if self.born.unit == Unit.PERSON.value and partition.column is not None and partition.key is None:
            raise ValueError(
                "in a ledger for persons, parts are by a hash of the identifier, such as "
                'ledger.partition("customer_id", 4): by another column a person may have rows in several parts'
            )
        if name in self.partitions or not name:
            raise ValueError("a partition has a name of its own")

        def effect() -> None:
            self.partitions[name] = partition

        return effect

    def _charge(self, record: Record) -> Callable[[], None]:
        fields = record.fields
        inside = None if record.kind == "reserve" else fields["within"]
        charge = charge_in(record, self.born.neighbours)
        if not charge.key or charge.key in self.keys or (inside is not None and type(inside) is not int):
            raise ValueError("a key is used once")
        if not isinstance(fields.get("user"), str | None):
            raise TypeError("who charged is a name")
        after = self._after(charge, lambda before, _: self._fixed_in(fields["limits"], before))
        if costs.total_to_json(self._told(after.total)) != fields["total"]:
            raise ValueError("the total is not the sum of the charges")
        return self._charging(record.seq, charge, after)

    def _charging(self, seq: int, charge: Charge, after: After) -> Callable[[], None]:
        def effect() -> None:
            self.charges[seq], self.keys[charge.key] = charge, seq
            self.filter, self.count = after.filter, self.count + 1
            if charge.reserve:
                self.reserved[seq] = Reservation(charge.cost, charge.part, Cost(neighbours=self.born.neighbours))
            after.then()

        return effect

    _reserve = _charge

    def _outcome(self, record: Record) -> Callable[[], None]:
        of, state, body = record.fields["of"], record.fields["state"], record.fields["body"]
        if type(of) is not int or not self._awaits_outcome(of):
            raise ValueError("an outcome belongs to one charge, which has no other")
        if (
            state not in STATES
            or (state == "consumed") != (body is None)
            or not (body is None or records.is_hex(body, 64))
        ):
            raise ValueError("an outcome is released, refused or consumed")
        if body is not None and not self.born.keep:
            raise ValueError("this ledger keeps no outputs")
        settled = Settled(record.seq, state)

        def effect() -> None:
            self.settled[of] = settled

        return effect

    def _adopt(self, record: Record) -> Callable[[], None]:
        adoption = _adoption_from_json({**record.fields, "seq": record.seq})

        def effect() -> None:
            self.adoptions = [*self.adoptions, adoption]

        return effect

    def _void(self, record: Record) -> Callable[[], None]:
        void = Void.from_json(record.fields)
        if void != Void(record.seq, void.by, void.reason, time=void.time, **self.put_aside()):
            raise ValueError("a void names exactly the invalid records since the last valid one")

        def effect() -> None:
            self.voids = Voids((*self.voids, void))

        return effect

    def _awaits_outcome(self, of: int) -> bool:
        """Whether this is a charge without an outcome, however old it is."""
        try:
            charge = self.charge_at(of)
            return charge is not None and not charge.reserve and self.settled_at(of) is None
        except TamperedLedgerError as damage:
            raise DamagedPastError(str(damage)) from None

    def _after(self, charge: Charge, fixed: Fixed) -> After:
        """The filter and the total after a charge, and how to get there; raises if it is not covered.

        ``fixed``: the filter by which a charge is judged that takes the total from the one to the other.
        """
        neighbours, composition = self.born.neighbours, self.born.composition
        neighbours.require(charge.cost.neighbours)
        self.check_part(charge.part)
        self._check_announced(charge)
        self._check_composed(charge)
        before = self.total
        if charge.within is not None:
            reserved, used = charge.within, self._used_after(charge, charge.within)
            return After(fixed(before, before), before, lambda: self.reserved.update({reserved: used}))
        composed, announced = self.composed, self.announced
        if composition.composes:
            composed = composed.after(charge.composed_as or charge.cost, charge.part)
        if composition.adds and charge.announced is not None:
            announced = announced.after(charge.announced, charge.part)
        total = Spent(composed.total(neighbours), announced.total(neighbours))
        judged = fixed(before, total)
        if not judged.covers(total):
            needs = charge.cost if charge.announced is None else charge.announced
            raise BudgetExceededError(
                f"the budget does not cover this release ({charge.what}): it needs {needs.words}, the ledger has "
                f"spent {self.spent.words} of {_budget_words(self.born.budget)}, left: {self.remaining}. Ask for less "
                "epsilon or delta"
            )

        def then() -> None:
            self.composed, self.announced = composed, announced

        return After(judged, total, then)

    def _check_announced(self, charge: Charge) -> None:
        if charge.announced is None:
            if self.born.composition.adds and charge.within is None:
                raise ValueError("a ledger that adds up needs the epsilon and the delta of every release")
            return
        self.born.neighbours.require(charge.announced.neighbours)
        if charge.announced is charge.cost and is_pure(charge.cost) and charge.cost.delta < 1:
            return
        if not is_pure(charge.announced):
            raise ValueError("an epsilon and a delta are announced, and no other part")
        if not satisfies(charge.cost, charge.announced):
            raise ValueError(
                f"a release of {charge.cost.words} is not private by what it announces ({charge.announced.words}): "
                "announce a larger epsilon or delta, or leave announced out"
            )

    def _check_composed(self, charge: Charge) -> None:
        """A pure release may be composed as a Gaussian one where it counts by its epsilon as well."""
        if charge.composed_as is None:
            return
        if self.born.composition is not Composition.BOTH or charge.reserve or charge.within is not None:
            raise ValueError("a release is composed with its own cost here")
        if not is_gaussian_of(charge.composed_as, charge.cost):
            raise ValueError("a pure release is composed as a Gaussian one that is no smaller")

    def _fixed_by(self, before: Spent, total: Spent) -> Filter:
        rule = self._filter
        return rule if rule.tight is None or before == total else rule.after(before, total)

    def _fixed_in(self, boxes: Json, before: Spent) -> Filter:
        """The limits that history says a charge fixed. They must keep the budget; how they were found is no matter."""
        if boxes is None:
            return self._filter
        tight, fixed = self._filter.tight, _boxes_from_json(boxes, self.born.neighbours)
        if tight is None or isinstance(tight.budget, Cost) or tight.boxes or not fixed:
            raise ValueError("the limits were fixed before, or there are none")
        if not legal(tight.budget, fixed, before.composed):
            raise ValueError("the limits exceed the budget")
        return self._filter.with_limits(Limits(tight.budget, fixed))

    def check_part(self, part: Part | None) -> None:
        """Raise unless this part was declared."""
        if part is not None and (part[0] not in self.partitions or part[1] not in self.partitions[part[0]].parts):
            raise ValueError(
                f"there is no part {part[1]!r} of {part[0]!r} in this ledger: declare it with "
                "ledger.partition(column, values) before"
            )

    def _used_after(self, charge: Charge, reserved: int) -> Reservation:
        paid = self.reserved.get(reserved)
        if paid is None or paid.part != charge.part or charge.reserve:
            raise ValueError("a charge within a reservation needs one, of the same part")
        used = costs.added(paid.used, charge.cost)
        if not within(used, paid.cost):
            raise BudgetExceededError(
                f"the reservation does not cover this release ({charge.what}): it needs {charge.cost!r}, of "
                f"{paid.cost!r} it has used {paid.used!r}. Every part of the cost has its own limit"
            )
        return replace(paid, used=used)


def _announced_to_json(announced: Cost | None) -> Json:
    return None if announced is None else costs.cost_to_json(announced)


def charge_in(record: Record, neighbours: Neighbours) -> Charge:
    """The charge or the reservation in a record."""
    fields = record.fields
    part, announced, composed_as = fields["part"], fields.get("announced"), fields.get("composed_as")
    cost = costs.cost_from_json(fields["cost"], neighbours)
    same = announced == fields["cost"]  # as of every pure release that announced nothing: one text has one meaning
    return Charge(
        _text(fields["key"]),
        _text(fields["what"]),
        _text(fields["plan"]),
        cost,
        None if part is None else _pair(part),
        fields.get("within"),
        record.kind == "reserve",
        _question(fields.get("question")),
        cost if same else None if announced is None else costs.cost_from_json(announced, neighbours),
        composed_as=None if composed_as is None else costs.cost_from_json(composed_as, neighbours),
    )


def fingerprint(key: str) -> str:
    """By what a checkpoint knows a key."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:FINGERPRINT]


def _mark(record: Record) -> str | int | None:
    """What the next checkpoint says of a record: the fingerprint of its key, or what it settles."""
    if record.kind in ("charge", "reserve"):
        return fingerprint(record.fields["key"])
    of: int | None = record.fields["of"] if record.kind == "outcome" else None
    return of


def _reservation_to_json(one: Reservation) -> Json:
    part = None if one.part is None else list(one.part)
    return {"cost": costs.cost_to_json(one.cost), "part": part, "used": costs.cost_to_json(one.used)}


def _reservation_from_json(fields: Json, neighbours: Neighbours) -> Reservation:
    cost, used = (costs.cost_from_json(fields[name], neighbours) for name in ("cost", "used"))
    return Reservation(cost, None if fields["part"] is None else _pair(fields["part"]), used)


def adoption_to_json(one: Adoption) -> Json:
    """For a checkpoint, and for people's programs."""
    return {**asdict(one), "lost": [list(mark) for mark in one.lost]}


def _adoption_from_json(fields: Json) -> Adoption:
    system = fields["file_system"]
    return Adoption(
        fields["seq"], _text(fields["by"]), _text(fields["reason"]), _text(fields["place"]),
        None if system is None else _text(system), tuple(map(_seen, fields["lost"])), _text(fields["time"]),
    )  # fmt: skip


def _budget_words(budget: Budget | Cost) -> str:
    return budget.words if isinstance(budget, Cost) else budget.cost.words


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
    if value.keys() != {"words", "digest"} or not records.is_hex(value["digest"], 32):
        raise ValueError("a question has words and a digest")
    return Question(_text(value["words"]), value["digest"])


def _texts(value: Json) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("names are a list")
    return [_text(one) for one in value]


def _pair(value: Json) -> Part:
    name, part = _texts(value)
    return name, part


def _is_true(value: Json) -> bool:
    if type(value) is not bool:
        raise TypeError("yes or no")
    return value


def _seen(value: Json) -> tuple[int, str]:
    seq, seen = value
    if type(seq) is not int or seq < 0 or not records.is_hex(seen, 64):
        raise ValueError("what was seen of a history is a number and a hash")
    return seq, seen
