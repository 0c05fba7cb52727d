"""What private statistics have in common: they show nothing, and leave the process only packed."""

from __future__ import annotations

import zlib
from typing import NoReturn


class PrivateState:
    """Private statistics in the making. They cannot be printed, compared, pickled or copied.

    An engine wraps the finished ones in a ``Secret``; between processes they travel by ``Pass.pack``.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<private {type(self).__name__.lower()}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("private statistics cannot decide a branch: release them through a mechanism first")

    __bool__ = __len__ = __iter__ = __contains__ = _refuse

    def __eq__(self, other: object) -> bool:
        self._refuse()

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("private statistics cannot be pickled or copied: pack them with the pass that made them")

    __copy__ = __deepcopy__ = __getstate__ = __reduce__ = __reduce_ex__  # type: ignore[assignment]


def sealed(body: bytes) -> bytes:
    """The bytes with a checksum, so that damage on the way is noticed."""
    return body + zlib.crc32(body).to_bytes(4, "little")


def unsealed(packed: bytes) -> bytes:
    """What ``sealed`` packed.

    >>> unsealed(sealed(b"sums"))
    b'sums'
    """
    body, mark = packed[:-4], packed[-4:]
    if zlib.crc32(body).to_bytes(4, "little") != mark:
        raise ValueError("these bytes are not statistics, or were damaged on the way")
    return body
