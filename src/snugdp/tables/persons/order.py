"""Rows in the order of their persons, and within each of their hashes: by one sort of whole numbers of 64 bits.

The first bits of a person's hash, some bits of the row's and the place of the row fit into one such number. Where these
bits do not decide, because two persons or two rows share them, the rows of all persons with the same first bits are
sorted again by everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.persons.hashing import Words

WHO, TEXT, HASH = "who", "text", "hash"  # of an index: both of the first tell persons apart
_HASH_BITS = 16


@dataclass(frozen=True, eq=False, repr=False)
class Ordered(PrivateState):
    """The rows of an index in order. ``new_person``, ``new_hash``: which differ from the one before. Private."""

    rows: NDArray[np.int64]
    new_person: NDArray[np.bool_]
    new_hash: NDArray[np.bool_]

    @property
    def places(self) -> NDArray[np.int64]:
        """How many rows of the same person come before each one."""
        every = np.arange(len(self.rows))
        return every - np.maximum.accumulate(np.where(self.new_person, every, 0))


def in_order(index: pl.DataFrame) -> Ordered:
    """By person, and then by hash; equal ones as they come. An index without hashes has none to tell apart."""
    who = index[WHO].to_numpy()
    hashes = index[HASH].to_numpy() if HASH in index.columns else np.zeros(len(who), dtype=np.uint64)
    rows, packed = _sorted(who, hashes)
    found = _compared(index, rows)
    new_group = _differs(packed >> np.uint64(_HASH_BITS))
    wrong = ~new_group & found.new_person | ~_differs(packed) & found.new_hash
    if wrong.any():
        group = np.cumsum(new_group)
        is_wrong = np.zeros(len(rows) + 1, dtype=bool)
        is_wrong[group[wrong]] = True
        _repair(index, found, np.flatnonzero(is_wrong[group]))
    return found


def _repair(index: pl.DataFrame, found: Ordered, where: NDArray[np.int64]) -> None:
    """Sort these places, which are those of some persons, by everything."""
    names = [name for name in (WHO, TEXT, HASH) if name in index.columns]
    rows = found.rows[where]
    rows = rows[index[rows].select(pl.arg_sort_by(names)).to_series().to_numpy()]
    again = _compared(index, rows)
    found.rows[where], found.new_person[where], found.new_hash[where] = rows, again.new_person, again.new_hash


def _sorted(who: Words, hashes: Words) -> tuple[NDArray[np.int64], Words]:
    """The rows in the order of the first bits of their persons and of their hashes, and these bits."""
    bits = len(who).bit_length()
    packed = who >> np.uint64(bits + _HASH_BITS)
    packed <<= np.uint64(_HASH_BITS)
    packed |= hashes >> np.uint64(64 - _HASH_BITS)
    packed <<= np.uint64(bits)
    packed |= np.arange(len(who), dtype=np.uint64)
    packed.sort()
    rows = (packed & np.uint64((1 << bits) - 1)).astype(np.int64)
    packed >>= np.uint64(bits)
    return rows, packed


def _compared(index: pl.DataFrame, rows: NDArray[np.int64]) -> Ordered:
    """Where in this order another person begins, or another hash."""
    new_person = _differs(index[WHO].to_numpy()[rows])
    if TEXT in index.columns:
        text = index[TEXT][rows]
        new_person |= text.ne_missing(text.shift()).to_numpy()
    new_hash = new_person if HASH not in index.columns else new_person | _differs(index[HASH].to_numpy()[rows])
    return Ordered(rows, new_person, new_hash)


def _differs(words: Words) -> NDArray[np.bool_]:
    found = np.ones(len(words), dtype=bool)
    np.not_equal(words[1:], words[:-1], out=found[1:])
    return found
