"""The records of a ledger: canonical JSON, each holding the hash of the one before it."""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from time import time as clock
from typing import NamedTuple

from snugdp.ledger.errors import LedgerError, TamperedLedgerError
from snugdp.serial.costs import Json

FORMATS = (1, 2, 3)  # of the records; a newer one is refused. Only from format 3 on there must be checkpoints
FORMAT = FORMATS[-1]
_LONGEST_USER = 200
_COMMON = ("prev", "seq", "kind", "time", "software")
_CHARGE = frozenset(
    {*_COMMON, "key", "what", "plan", "cost", "announced", "part", "total", "limits", "user", "composed_as"}
)
FIELDS: Mapping[str, frozenset[str]] = {
    "genesis": frozenset(
        {*_COMMON, "format", "id", "dataset", "unit", "neighbours", "budget", "keep", "composition", "users"}
    ),
    "partition": frozenset({*_COMMON, "name", "parts", "column", "hash_key"}),
    "charge": frozenset({*_CHARGE, "question", "within"}),
    "reserve": _CHARGE,
    "outcome": frozenset({*_COMMON, "of", "state", "body"}),
    "checkpoint": frozenset({*_COMMON, "genesis", "earlier", "index", "charges", "adoptions", "spent", "voids"}),
    "adopt": frozenset({*_COMMON, "by", "reason", "place", "file_system", "lost"}),
    "void": frozenset({*_COMMON, "by", "reason", "before", "first", "last", "digest"}),
}
_LATER = frozenset(
    {"question", "announced", "user", "composition", "users", "column", "hash_key", "voids", "composed_as"}
)  # older records have none
_WRITTEN_BY = re.compile(r'"software":"snugdp ([^"]*)"')
_STRING, _DEEPEST = re.compile(r'"(?:[^"\\]|\\.)*"'), 64
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", re.ASCII)
_HEX = frozenset("0123456789abcdef")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


class Row(NamedTuple):
    """One record as it is stored. ``seq`` counts from 0 (genesis) without gaps."""

    seq: int
    record: str  # canonical JSON, ASCII
    body: str | None  # the outcome's text, only beside the record of an outcome
    hash: str  # SHA-256 of the record, 64 hexadecimal digits


@dataclass(frozen=True)
class Record:
    """One line of the history. ``hash`` is the SHA-256 of ``text``; ``text`` holds the hash of the one before."""

    seq: int
    kind: str
    fields: Mapping[str, Json]
    text: str
    hash: str

    def row(self, body: str | None = None) -> Row:
        """The record as it is stored."""
        return Row(self.seq, self.text, body, self.hash)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical(fields: Mapping[str, Json]) -> str:
    """JSON with sorted keys, no spaces, ASCII only: one text for one meaning."""
    return _ENCODER.encode(fields)


def stamp() -> Mapping[str, str]:
    """When and by what a record is made. Information only: order is by number, never by a clock."""
    return _stamp(math.floor(clock()))


@lru_cache(maxsize=1)
def _stamp(second: int) -> Mapping[str, str]:
    from snugdp import __version__

    return {"time": datetime.fromtimestamp(second, UTC).isoformat(), "software": f"snugdp {__version__}"}


@lru_cache(maxsize=1)
def account_name() -> str | None:
    """Who writes: the name of the account, as far as the system tells."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
    return name if name.isprintable() and 0 < len(name) <= _LONGEST_USER else None


def is_hex(value: Json, length: int) -> bool:
    """Whether this is text of so many hexadecimal digits."""
    return isinstance(value, str) and len(value) == length and set(value) <= _HEX


def write(prev: str, seq: int, kind: str, fields: Mapping[str, Json]) -> Record:
    """A new record after the one with hash ``prev``."""
    whole = {**fields, "prev": prev, "seq": seq, "kind": kind}
    text = canonical(whole)
    return Record(seq, kind, whole, text, digest(text))


def read(row: Row, prev: str | None, seq: int) -> Record:
    """The record in a row, if it is the one that comes after ``prev``; else ``TamperedLedgerError``.

    With ``prev=None`` whatever comes before it; its hash is for the caller to compare.
    """
    check_hash(row, seq)
    try:
        fields = _parsed(row.record)
    except RecursionError:
        raise too_deep(seq) from None
    if fields is None:
        raise TamperedLedgerError(f"record {seq} of the ledger is not canonical JSON")
    if prev not in (None, fields.get("prev")) or fields.get("seq") != seq or type(fields.get("seq")) is not int:
        raise TamperedLedgerError(f"record {seq} of the ledger does not follow record {seq - 1}: the chain is broken")
    kind = fields.get("kind")
    if kind == "genesis" and type(fields.get("format")) is int and fields["format"] > FORMAT:
        raise TamperedLedgerError(
            "this ledger was written by a newer version of snugdp: upgrade snugdp to open it; nothing was changed"
        )
    if not isinstance(kind, str) or kind not in FIELDS or not _complete(kind, fields):
        raise TamperedLedgerError(f"record {seq} of the ledger has an unknown form")
    if not _has_body(row, kind, fields):
        raise TamperedLedgerError(f"the output beside record {row.seq} of the ledger was changed or lost")
    return Record(seq, kind, fields, row.record, row.hash)


def too_deep(seq: int) -> LedgerError:
    """For a record that this process cannot judge, though another one may: nobody may put it aside."""
    return LedgerError(f"record {seq} of the ledger is nested too deeply for this process: open it from a plain script")


def check_hash(row: Row, seq: int) -> None:
    """Raise unless a row has this number and holds the text of its hash, whatever that means."""
    if type(row.seq) is not int or row.seq != seq:
        raise TamperedLedgerError(f"record {seq} of the ledger is missing: it was deleted or moved")
    if not isinstance(row.record, str) or not isinstance(row.hash, str) or digest(row.record) != row.hash:
        raise TamperedLedgerError(f"record {seq} of the ledger was changed: its hash does not match")


def names_before(row: Row, prev: str) -> bool:
    """Whether the text of a row, be it no record at all, holds the hash before it where a record has it.

    A record that was written after another one, in another history, does not.
    """
    return f'"prev":"{prev}"' in row.record


def may_be_newer(row: Row) -> bool:
    """Whether a later version may have written this: it says so, or does not say which version it was.

    Of two versions with the same numbers and other suffixes, such as rc1, either may be the later one.
    """
    from snugdp import __version__

    said, own = _WRITTEN_BY.findall(row.record), _numbers(__version__)
    return not said or any(one != __version__ and (not _numbers(one) or _numbers(one) >= own) for one in said)


def lacks_its_output(row: Row) -> bool:
    """Whether this is the record of an outcome whose output was changed or lost: somebody may have seen it."""
    fields = _parsed(row.record)
    if fields is None or fields.get("kind") != "outcome" or not _complete("outcome", fields):
        return False
    return not _has_body(row, "outcome", fields)


def is_readable(row: Row) -> bool:
    """Whether a row has the form of a record, be it legal or not."""
    try:
        read(row, None, row.seq)
    except TamperedLedgerError:
        return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return () if found is None else tuple(map(int, found.groups()))


def _parsed(text: str) -> dict[str, Json] | None:
    if _is_deep(text):
        return None
    try:
        fields = json.loads(text)
        return fields if isinstance(fields, dict) and canonical(fields) == text else None
    except ValueError:
        return None


def _is_deep(text: str) -> bool:
    """Whether it is nested more than any record is: the same for all, whatever else is on their stacks."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    depth = most = 0
    for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most > _DEEPEST


def _complete(kind: str, fields: Mapping[str, Json]) -> bool:
    texts = all(isinstance(fields.get(name), str) for name in ("prev", "time", "software"))
    return texts and FIELDS[kind] - _LATER <= fields.keys() <= FIELDS[kind]


def _has_body(row: Row, kind: str, fields: Mapping[str, Json]) -> bool:
    """Whether the output beside a record is the one that it names, or none where it names none."""
    expected = fields["body"] if kind == "outcome" else None
    if row.body is None and expected is None:
        return True
    return isinstance(row.body, str) and expected == digest(row.body)
