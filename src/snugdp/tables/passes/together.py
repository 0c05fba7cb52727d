"""Several passes in one: every row is read once, and each pass keeps what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw

from snugdp.secrecy.private_state import PrivateState, sealed, unsealed
from snugdp.tables.passes.base import Pass
from snugdp.tables.schema.kinds import DType

_WIDTH = 8  # bytes of a length


class Checked(Protocol):
    """What is public about columns and can be compared with the declared types of a table."""

    def check(self, types: Mapping[str, DType]) -> None:
        """An error if they do not go together."""


class JointState(PrivateState):
    """The states of several passes. Private."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts


@dataclass(frozen=True)
class Together:
    """Passes over the same rows. ``schema``: the columns of all of them, as the table must have them."""

    passes: tuple[Pass[Any], ...]
    schema: Checked | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that any of them reads."""
        return tuple(dict.fromkeys(name for each in self.passes for name in each.columns))

    def empty(self) -> JointState:
        """No rows."""
        return JointState([each.empty() for each in self.passes])

    def fold(self, state: JointState, frame: nw.DataFrame[Any]) -> JointState:
        """Some more rows."""
        return JointState([each.fold(part, frame) for each, part in zip(self.passes, state.parts, strict=True)])

    def merge(self, one: JointState, other: JointState) -> JointState:
        """Both parts."""
        pairs = zip(self.passes, one.parts, other.parts, strict=True)
        return JointState([each.merge(first, second) for each, first, second in pairs])

    def pack(self, state: JointState) -> bytes:
        """One after the other, each behind its length."""
        packed = (each.pack(part) for each, part in zip(self.passes, state.parts, strict=True))
        return sealed(b"".join(len(body).to_bytes(_WIDTH, "little") + body for body in packed))

    def unpack(self, packed: bytes) -> JointState:
        """What was packed."""
        body, parts = unsealed(packed), []
        for each in self.passes:
            end = _WIDTH + int.from_bytes(body[:_WIDTH], "little")
            parts.append(each.unpack(body[_WIDTH:end]))
            body = body[end:]
        if body:
            raise ValueError("these bytes are not the states of these passes")
        return JointState(parts)
