"""The records before the newest checkpoint, looked up one by one: each is proved to be in the history that counts.

A checkpoint says which keys and outcomes lie between it and the one before, and holds that one's hash. So from the
newest checkpoint, which was found in the anchored history, every older record can be reached by hashes: from one
checkpoint to the one before, and from a checkpoint back to any record of its stretch (book.proof.md, Lemma 4).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from snugdp.core.guarantee import Neighbours
from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.records import Record
from snugdp.ledger.history.state import Charge, Settled, charge_in, fingerprint
from snugdp.ledger.stores.store import Transaction

Point = tuple[int, str]  # a checkpoint: its number and its hash


class History:
    """Looks up old records, within one transaction after the other. What it has learnt of checkpoints it keeps."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._rows: Transaction | None = None
        self._voided: Mapping[int, tuple[str, str]] = {}
        self._newest: Point | None = None
        self._points: list[Point] = []  # those that were read, in order
        self._keys: dict[str, int] = {}
        self._twins: dict[str, list[int]] = {}  # later keys whose fingerprint is that of an earlier one
        self._settled: dict[int, int] = {}
        self._stretch: tuple[int, Mapping[int, str]] = (-1, {})  # up to which checkpoint, and hashes of its records

    def within(self, rows: Transaction, newest: Point | None, voided: Mapping[int, tuple[str, str]]) -> None:
        """The transaction to read in, the newest checkpoint, which is known to be in the history, and what is void."""
        self._rows, self._newest, self._voided = rows, newest, voided

    def find(self, key: str) -> int | None:
        """The number of the charge with this key."""
        self._learn()
        mark = fingerprint(key)
        marked = [self._keys[mark], *self._twins.get(mark, ())] if mark in self._keys else []
        return next((seq for seq in marked if self._record(seq).fields.get("key") == key), None)

    def charge(self, seq: int) -> Charge | None:
        """The charge of this number."""
        record = self._record(seq)
        return charge_in(record, self._neighbours) if record.kind in ("charge", "reserve") else None

    def settled(self, seq: int) -> Settled | None:
        """What became of it."""
        self._learn()
        at = self._settled.get(seq)
        return None if at is None else Settled(at, self._record(at).fields["state"])

    def hash(self, seq: int) -> str:
        """The hash of a record."""
        return self._record(seq).hash

    def _learn(self) -> None:
        """Read the checkpoints that are not known yet, from the newest back: each holds the hash of the one before."""
        known, at, new = self._points[-1] if self._points else None, self._newest, []
        while at is not None and at != known:
            seq, seen = at
            record = self._read(seq, seen)
            if record.kind != "checkpoint":
                raise TamperedLedgerError(f"record {seq} of the ledger is no checkpoint: its history was rewritten")
            new.append(record)
            at = (
                None if record.fields["earlier"] is None else (record.fields["earlier"][0], record.fields["earlier"][1])
            )
        for record in reversed(new):
            start = record.seq - len(record.fields["index"])
            for seq, mark in enumerate(record.fields["index"], start):
                if isinstance(mark, int):
                    self._settled[mark] = seq
                elif mark is not None and self._keys.setdefault(mark, seq) != seq:
                    self._twins.setdefault(mark, []).append(seq)
            self._points.append((record.seq, record.hash))

    def _record(self, seq: int) -> Record:
        self._learn()
        end, seen = self._points[bisect_left(self._points, (seq, ""))]
        if self._stretch[0] != end or seq not in self._stretch[1]:
            self._stretch = (end, self._chained(seq, end, seen))
        return self._read(seq, self._stretch[1][seq])

    def _chained(self, first: int, end: int, seen: str) -> Mapping[int, str]:
        """The hashes of the records up to a checkpoint, if they lead to it."""
        hashes: dict[int, str] = {}
        for seq, row in enumerate(self._transaction.rows(first - 1), first):
            hashes[seq] = records.hash_after(row, hashes.get(seq - 1), seq, self._voided)
            if seq == end:
                break
        if hashes.get(end) != seen:
            raise TamperedLedgerError(f"records {first} to {end} of the ledger were changed or lost")
        return hashes

    def _read(self, seq: int, seen: str) -> Record:
        row = self._transaction.row(seq)
        if row is None or row.hash != seen:
            raise TamperedLedgerError(f"record {seq} of the ledger was changed or lost")
        return records.read(row, None, seq)

    @property
    def _transaction(self) -> Transaction:
        assert self._rows is not None
        return self._rows
