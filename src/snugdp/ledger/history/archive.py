"""The records before the newest checkpoint, looked up one by one: each is proved to be in the history that counts.

A checkpoint says which keys and outcomes lie between it and the one before, and holds that one's hash. So from the
newest checkpoint, which was found in the anchored history, every older record can be reached by hashes: from one
checkpoint to the one before, and from a checkpoint back to any record of its stretch (book.proof.md, Lemma 4).
"""

from __future__ import annotations

from bisect import bisect_left

from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.records import Record
from snugdp.ledger.history.state import Settled, fingerprint
from snugdp.ledger.history.voids import Voids
from snugdp.ledger.stores.store import Transaction

Point = tuple[int, str]  # a checkpoint: its number and its hash


class History:
    """Looks up old records, within one transaction after the other. What it has learnt of checkpoints it keeps.

    It knows the checkpoints from the newest back to the oldest that was ever needed.
    """

    def __init__(self) -> None:
        self._rows: Transaction | None = None
        self._voids = Voids()
        self._newest: Point | None = None
        self._points: list[Point] = []  # those that were read, in order
        self._from = 0  # the first record of which they tell
        self._earlier: Point | None = None  # the checkpoint before them
        self._keys: dict[str, int] = {}
        self._twins: dict[str, list[int]] = {}  # further keys of the same fingerprint
        self._settled: dict[int, int] = {}
        self._stretch: tuple[int, dict[int, str]] = (-1, {})  # up to which checkpoint, and hashes of its records

    def within(self, rows: Transaction) -> None:
        """The transaction to read in."""
        self._rows = rows

    def ends_with(self, newest: Point | None, voids: Voids) -> None:
        """The newest checkpoint, which is known to be in the history, and what is void."""
        self._newest, self._voids = newest, voids

    def find(self, key: str) -> int | None:
        """The number of the first charge with this key."""
        self._learn(0)
        mark = fingerprint(key)
        marked = sorted([self._keys[mark], *self._twins.get(mark, ())]) if mark in self._keys else []
        return next((seq for seq in marked if self.record(seq).fields.get("key") == key), None)

    def settled(self, seq: int) -> Settled | None:
        """What became of the charge of this number: its first outcome."""
        self._learn(seq)
        at = self._settled.get(seq)
        return None if at is None else Settled(at, self.record(at).fields["state"])

    def record(self, seq: int) -> Record:
        """The record of this number, which is not void."""
        self._learn(seq)
        end, seen = self._points[bisect_left(self._points, (seq, ""))]
        if self._stretch[0] != end or seq not in self._stretch[1]:
            self._stretch = (end, self._chained(seq, end, seen))
        return self._read(seq, self._stretch[1][seq])

    def _learn(self, back_to: int) -> None:
        """Read the checkpoints that are not known yet, from the newest back to the first one after this record."""
        known, at, newer = self._points[-1] if self._points else None, self._newest, list[Record]()
        while at is not None and at != known:
            newer.append(self._checkpoint(at))
            at = _earlier(newer[-1])
            if known is None:
                self._from, self._earlier = _start(newer[-1]), at
                break
        self._points += [self._listed(record) for record in reversed(newer)]
        older = list[Record]()
        while self._from > back_to and self._earlier is not None:
            older.append(self._checkpoint(self._earlier))
            self._from, self._earlier = _start(older[-1]), _earlier(older[-1])
        if older:
            self._points = [*(self._listed(record) for record in reversed(older)), *self._points]

    def _listed(self, record: Record) -> Point:
        """Take down the keys and the outcomes of which a checkpoint tells."""
        for seq, mark in enumerate(record.fields["index"], _start(record)):
            if isinstance(mark, int):
                self._settled[mark] = min(seq, self._settled.get(mark, seq))
            elif mark is not None and self._keys.setdefault(mark, seq) != seq:
                self._twins.setdefault(mark, []).append(seq)
        return record.seq, record.hash

    def _checkpoint(self, at: Point) -> Record:
        """A checkpoint by the hash that the one after it holds."""
        record = self._read(*at)
        if record.kind != "checkpoint":
            raise TamperedLedgerError(f"record {record.seq} of the ledger is no checkpoint: its history was rewritten")
        return record

    def _chained(self, first: int, end: int, seen: str) -> dict[int, str]:
        """The hashes of the records up to a checkpoint, if they lead to it."""
        hashes: dict[int, str] = {}
        for record in self._voids.records(self._transaction.rows(first - 1), first, None):
            hashes[record.seq] = record.hash
            if record.seq >= end:
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


def _start(checkpoint: Record) -> int:
    """The first record of which a checkpoint tells."""
    return checkpoint.seq - len(checkpoint.fields["index"])


def _earlier(checkpoint: Record) -> Point | None:
    """The checkpoint before this one."""
    earlier = checkpoint.fields["earlier"]
    return None if earlier is None else (earlier[0], earlier[1])
