"""Rows that do not fit into memory: in a file without a name, which vanishes with the process that made it."""

from __future__ import annotations

import io
import tempfile
import weakref
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.sources.base import Frame

if TYPE_CHECKING:
    import polars as pl

_SIZE = 8  # bytes of the size of an index


class Spill(PrivateState):
    """A temporary file of blocks. Nobody else can open it: it has no name, and the mode 600."""

    __slots__ = ("__weakref__", "_end", "_file", "_lock")

    def __init__(self) -> None:
        # Closed once nobody refers to it, without a warning.
        self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock, self._end = Lock(), 0

    def write(self, frame: Frame, index: pl.DataFrame | None) -> SpilledRows:
        """Append rows."""
        packed = b"" if index is None else _packed(nw.from_native(index, eager_only=True))
        body = len(packed).to_bytes(_SIZE, "little") + packed + _packed(frame)
        return SpilledRows(self, self.append(body), len(body), frame.implementation.is_polars())

    def append(self, *parts: bytes | NDArray[Any]) -> int:
        """Write bytes, or the bytes of arrays, behind all others; returned is where they begin."""
        with self._lock:
            start = self._end
            self._end = self._put(start, parts)
        return start

    def overwrite(self, start: int, *parts: bytes | NDArray[Any]) -> None:
        """Write bytes in the place of others that nobody needs any more."""
        with self._lock:
            self._put(start, parts)

    def _put(self, start: int, parts: tuple[bytes | NDArray[Any], ...]) -> int:
        self._file.seek(start)
        for part in parts:
            left = np.frombuffer(part, dtype=np.uint8).data if len(part) else memoryview(b"")
            while left:
                left = left[self._file.write(left) :]
        return int(self._file.tell())

    def read(self, start: int, size: int) -> NDArray[np.uint8]:
        """Some bytes; an error if they are not there."""
        body = np.empty(size, dtype=np.uint8)
        with self._lock:
            self._file.seek(start)
            left = body.data
            while left:
                if not (found := self._file.readinto(left)):
                    raise OSError
                left = left[found:]
        return body


@dataclass(frozen=True, repr=False, eq=False)
class SpilledRows(PrivateState):
    """Rows in a file, and their index if they have one. Private."""

    spill: Spill
    start: int
    size: int
    polars: bool

    def read(self) -> tuple[Frame, pl.DataFrame | None]:
        """The rows and their index again."""
        body = self.spill.read(self.start, self.size).data
        end = _SIZE + int.from_bytes(body[:_SIZE], "little")
        index = None if end == _SIZE else _unpacked(body[_SIZE:end], polars=True)
        return nw.from_native(_unpacked(body[end:], self.polars), eager_only=True), index


def can_spill(frame: Frame) -> bool:
    """Whether rows can be written as they are: frames of other libraries are in memory anyhow, as those of objects."""
    kind = frame.implementation
    return kind.is_pyarrow() or (kind.is_polars() and nw.Object not in frame.schema.values())


def _packed(frame: Frame) -> bytes:
    native: Any = frame.to_native()
    packed = io.BytesIO()
    if frame.implementation.is_polars():
        native.write_ipc_stream(packed)
        return packed.getvalue()
    import pyarrow as pa

    with pa.ipc.new_stream(packed, native.schema) as stream:
        stream.write_table(native)
    return packed.getvalue()


def _unpacked(body: memoryview, polars: bool) -> Any:
    if polars:
        import polars as pl

        return pl.read_ipc_stream(io.BytesIO(body))
    import pyarrow as pa

    with pa.ipc.open_stream(body) as stream:
        return stream.read_all()
