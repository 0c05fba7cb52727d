"""Several passes in one: every row is read once, and each pass keeps what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.passes.base import Pass
from snugdp.tables.schema.schema import Schema

_WIDTH = 8  # bytes of a length


class States(PrivateState):
    """The state of every pass."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts


@dataclass(frozen=True)
class Together:
    """Passes over the same rows. ``schema``: the columns of all of them, as the table must have them."""

    passes: tuple[Pass[Any], ...]
    schema: Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that any of them reads."""
        return tuple(dict.fromkeys(name for each in self.passes for name in each.columns))

    def empty(self) -> States:
        """No rows."""
        return States([each.empty() for each in self.passes])

    def fold(self, state: States, frame: nw.DataFrame[Any]) -> States:
        """Some more rows."""
        return States([each.fold(part, frame) for each, part in zip(self.passes, state.parts, strict=True)])

    def merge(self, one: States, other: States) -> States:
        """Both parts."""
        pairs = zip(self.passes, one.parts, other.parts, strict=True)
        return States([each.merge(first, second) for each, first, second in pairs])

    def pack(self, state: States) -> bytes:
        """One after the other, each behind its length."""
        packed = (each.pack(part) for each, part in zip(self.passes, state.parts, strict=True))
        return b"".join(len(body).to_bytes(_WIDTH, "little") + body for body in packed)

    def unpack(self, packed: bytes) -> States:
        """What was packed."""
        bodies = list(_bodies(packed))
        if len(bodies) != len(self.passes):
            raise ValueError("these bytes are not the states of these passes")
        return States([each.unpack(body) for each, body in zip(self.passes, bodies, strict=True)])


def _bodies(packed: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(packed):
        end = at + _WIDTH + int.from_bytes(packed[at : at + _WIDTH], "little")
        yield packed[at + _WIDTH : end]
        at = end
