"""From a path or URL to an open ledger: one for every process and address."""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from snugdp.ledger.book import Ledger

_Place: TypeAlias = tuple[int, str, str | None]  # process, address, anchor
_KNOWN: dict[_Place, Ledger] = {}
_LOCK = threading.Lock()


def opened(where: str | os.PathLike[str], anchor: str | None = None) -> Ledger:
    """The ledger at this address, opened once per process; it is never made here."""
    from snugdp.ledger.book import Ledger
    from snugdp.ledger.stores.store import store_at

    place = (os.getpid(), store_at(where, None, anchor).where, anchor)
    with _LOCK:
        known = _KNOWN.get(place)
        if known is None or not known.usable:
            known = _KNOWN[place] = Ledger.open(where, anchor=anchor)
        return known


def without_password(where: str) -> str:
    """An address that may be shown and pickled; paths are unchanged.

    >>> without_password("postgresql://ann:secret@db.example/privacy?password=x#people")
    'postgresql://ann@db.example/privacy#people'
    """
    if not where.startswith(("postgresql://", "postgres://")):
        return where
    scheme, rest = where.split("://", 1)
    user, at, place = rest.rpartition("@")
    server, mark, dataset = place.partition("#")
    path, _, query = server.partition("?")
    kept = "&".join(item for item in query.split("&") if item and not _secret(item.partition("=")[0]))
    return f"{scheme}://{user.split(':', 1)[0]}{at}{path}{'?' if kept else ''}{kept}{mark}{dataset}"


def _secret(name: str) -> bool:
    """Whether a parameter of a URL holds a password; its name may be written with percent signs."""
    return re.search("password|secret", unquote(name), re.IGNORECASE) is not None


def _forget() -> None:
    """In a forked child: what the parent opened is the parent's, and its lock may have been held."""
    globals()["_LOCK"] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
