"""Rows that count for nothing: who said so, which they are, and how the chain is followed through them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256

from snugdp.ledger.errors import TamperedLedgerError
from snugdp.ledger.history import records
from snugdp.ledger.history.records import Record, Row, is_hex
from snugdp.serial.costs import Json


@dataclass(frozen=True)
class Void:
    """Somebody has said that records which are none count for nothing; no charge was ever made by them."""

    seq: int
    by: str
    reason: str
    before: str  # the hash of the record before the first of them
    first: int
    last: int
    digest: str  # of their hashes, in order
    time: str

    @property
    def words(self) -> str:
        """When, by whom, why, and which."""
        which = f"record {self.first}" if self.first == self.last else f"records {self.first} to {self.last}"
        return f"{which}, {self.time[:16].replace('T', ' ')} by {self.by}: {self.reason} (record {self.seq})"

    def to_json(self) -> dict[str, Json]:
        """For a checkpoint, and for people's programs."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Json) -> Void:
        """From a void, or from a checkpoint after it."""
        void = cls(**{name: fields[name] for name in cls.__dataclass_fields__})
        numbers, texts = (void.seq, void.first, void.last), (void.by, void.reason, void.time)
        if not all(type(one) is int for one in numbers) or not 0 < void.first <= void.last < void.seq:
            raise ValueError("a void comes after the records that it names")
        if not all(isinstance(one, str) for one in texts) or not (is_hex(void.before, 64) and is_hex(void.digest, 64)):
            raise ValueError("a void says who, why and when, and has two hashes")
        return void


class Voids(tuple[Void, ...]):
    """All voids of a history, in order."""

    __slots__ = ()

    def at(self, seq: int) -> Void | None:
        """The void that names the row of this number."""
        if not self:
            return None
        place = bisect_right(self, seq, key=lambda void: void.first)
        return self[place - 1] if place and seq <= self[place - 1].last else None

    def records(self, rows: Iterable[Row], first: int, prev: str | None) -> Iterator[Record]:
        """The records in rows that begin with number ``first``, each after the one before it; void rows are passed.

        ``prev``: the hash before the first row, None if that is for the caller to compare. ``first`` is not in the
        middle of what is void.
        """
        run = sha256()
        for seq, row in enumerate(rows, first):
            void = self.at(seq)
            if void is None:
                record = records.read(row, prev, seq)
                prev = record.hash
                yield record
                continue
            records.check_hash(row, seq)
            if seq == void.first:
                if prev not in (None, void.before):
                    raise _changed(void)
                run = sha256()
            run.update(row.hash.encode("ascii"))
            if seq == void.last and run.hexdigest() != void.digest:
                raise _changed(void)
            prev = row.hash


def digest_of(hashes: Iterable[str]) -> str:
    """One digest for the hashes of several rows, in order."""
    return records.digest("".join(hashes))


def _changed(void: Void) -> TamperedLedgerError:
    which = f"record {void.first}" if void.first == void.last else f"records {void.first} to {void.last}"
    return TamperedLedgerError(f"{which} of the ledger, void by record {void.seq}, were changed or lost")
