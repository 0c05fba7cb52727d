"""Ledgers that forget, repeat or believe what they are told."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from snugdp.audit.mutants.base import Changes, Topic
from snugdp.audit.mutants.ledger_checks import Attacked
from snugdp.core.guarantee import Cost, Neighbours
from snugdp.ledger import book, handle, records
from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.handle import Handle
from snugdp.ledger.limits import Limits
from snugdp.ledger.memory import MemoryLedger
from snugdp.ledger.state import State
from snugdp.ledger.store import Mark
from snugdp.ledger.tally import Tally
from snugdp.queries import robust
from snugdp.release.once import Purchase
from snugdp.serial import costs
from snugdp.serial.codec import Kept

mutant = Topic("ledger")


@mutant("charge after the draw", "G", Attacked("pays first"), quick=True)
def _() -> Changes:
    """A release tests and draws, and pays when it is done."""

    def late(plan: Any, test: Any, mechanism: Any, data: Any, purse: Any) -> Any:
        passed = test.passes(data, purse.noise)
        value = mechanism.draw(data, purse.noise) if passed else None
        return purse.pay(plan, lambda *_: Kept(refused=not passed, value=value))

    return [(robust, "release_or_refuse", late)]


@mutant("a key draws again", "G", Attacked("one output"), quick=True)
def _() -> Changes:
    """A retry with the same key is not charged, and draws anew."""

    def drawn(self: Purchase) -> Any:
        self._receipt = receipt = self._pay()
        assert receipt is not None
        return self._walked(receipt)

    return [(Purchase, "_go_on", drawn)]


@mutant("anchor before the commit", "G", Attacked("crash before the commit"))
def _() -> Changes:
    """The newest head is remembered before the record is durable."""
    append = Handle._append

    def early(self: Handle, rows: Any, new: Any) -> None:
        append(self, rows, new)
        record = new.judged.record
        self.store.anchor.advance(Mark(self.state.born.id, record.seq, record.hash))

    return [(Handle, "_append", early)]


@mutant("anchor not looked at", "G", Attacked("older copy"))
def _() -> Changes:
    """An older copy of the ledger is believed, and its anchor moved back to it."""
    mark = Mark

    def unchecked(self: Handle) -> Any:
        return mark(self.state.born.id, self.state.seq, self.state.head)

    return [(Handle, "_check_anchor", unchecked)]


@mutant("anchor moves back", "G", Attacked("older copy"))
def _() -> Changes:
    """The anchor takes any head for the newest, and a ledger that is behind it is accepted."""

    def check(self: Handle, seq: int, seen: str) -> None:
        if 0 <= seq <= self.state.seq and self.state.hashes[seq] != seen:
            raise TamperedLedgerError("another history")

    return [(Handle, "check_mark", check)]


@mutant("made again when it is missing", "G", Attacked("missing ledger"))
def _() -> Changes:
    """A ledger whose file is gone is made anew, with all of its budget."""
    create = book._create

    def anew(store: Any, wanted: Any) -> None:
        if store.anchor.exists():
            os.unlink(store.anchor.place)
        create(store, wanted)

    return [(book, "_create", anew)]


@mutant("budget outside the chain", "G", Attacked("larger budget"))
def _() -> Changes:
    """A record is checked against its own hash, and not against the one before it."""
    read = records.read

    def unchained(row: Any, prev: str, seq: int) -> Any:
        parsed = records._parsed(row.record) or {}
        return read(row, parsed.get("prev", prev), seq)

    return [(records, "read", unchained)]


@mutant("records without hashes", "G", Attacked("edited charge"))
def _() -> Changes:
    """What a record says is believed, whatever its hash is."""
    read = records.read

    def believed(row: Any, prev: str, seq: int) -> Any:
        record = read(row._replace(hash=records.digest(row.record)), prev, seq)
        return records.Record(record.seq, record.kind, record.fields, record.text, row.hash)

    return [(records, "read", believed), (handle, "_changed", lambda row: False)]


@mutant("outputs without hashes", "G", Attacked("edited output"))
def _() -> Changes:
    """A stored output is shown as it is found."""
    return [(records, "_check_body", lambda *_: None)]


@mutant("totals in floats", "G", Attacked("exact sums"))
def _() -> Changes:
    """The ledger adds costs as floats."""
    added = costs.added

    def floats(total: Cost, cost: Cost) -> Cost:
        whole = added(total, cost)
        object.__setattr__(whole, "epsilon", Fraction(float(total.epsilon) + float(cost.epsilon)))
        return whole

    return [(costs, "added", floats)]


@mutant("relations mixed", "G", Attacked("other relation"))
def _() -> Changes:
    """Costs of both neighbouring relations are added."""
    return [(Neighbours, "require", lambda self, other: None)]


@mutant("refusals for free", "G", Attacked("refusal"))
def _() -> Changes:
    """When a refusal is stored, what was spent is forgotten."""
    take = State.take

    def forgetful(self: State, judged: Any) -> None:
        take(self, judged)
        if judged.record.kind == "outcome" and judged.record.fields["state"] == "refused":
            self.tally = Tally()

    return [(State, "take", forgetful)]


@mutant("limits not looked at", "G", Attacked("overspending"))
def _() -> Changes:
    """A charge is written down whatever the budget is."""
    return [(Limits, "covers", lambda self, total: True)]


@mutant("a charge that is lost", "G", Attacked("overspending"))
def _() -> Changes:
    """A ledger in memory gives receipts, and adds nothing up."""
    write = MemoryLedger._write

    def lost(self: MemoryLedger, total: Cost, cost: Cost, what: str) -> Any:
        return write(self, self._spent, cost, what)

    return [(MemoryLedger, "_write", lost)]


@mutant("handle across a fork", "G", Attacked("fork"))
def _() -> Changes:
    """A forked child uses the connection of its parent."""
    return [(Handle, "_require_this_process", lambda self: None)]
