"""Rows in the order of their persons, and within each of their hashes: by sorts of whole numbers of 64 bits.

Many rows are cut into pieces by the first bits of their persons' hashes: such a piece fits into a cache, and has all
rows of its persons. Some more bits of a person's hash, some of the row's and the place of the row in its piece fit into
one number. Where these bits do not decide, because two persons or two rows share them, the rows of all persons with the
same bits are sorted again by everything.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from snugdp.secrecy.private_state import PrivateState
from snugdp.tables.engines import cores
from snugdp.tables.persons.hashing import Words

WHO, TEXT, HASH = "who", "text", "hash"  # of an index: both of the first tell persons apart
_HASH_BITS = 16
_PIECE_BITS = 17  # of the number of rows from which on there are pieces
_MAX_BITS = 8  # that tell pieces apart
T = TypeVar("T")


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
    found = by_piece(index, lambda order: order)
    if len(found) == 1:
        return found[0]
    return Ordered(
        *(np.concatenate([getattr(one, name) for one in found]) for name in ("rows", "new_person", "new_hash"))
    )


def by_piece(index: pl.DataFrame, work: Callable[[Ordered], T]) -> list[T]:
    """What is done with each piece: all rows of the persons with the same first bits, in order; by several threads."""
    who = index[WHO].to_numpy()
    bits = min(max(len(who).bit_length() - _PIECE_BITS, 0), _MAX_BITS)
    if not bits:
        return [work(_ordered(index))]
    names = [name for name in (WHO, TEXT, HASH) if name in index.columns]
    keys, first = index.select(names).rechunk(), (who >> np.uint64(64 - bits)).astype(np.uint8)
    rows = np.argsort(first, kind="stable")
    ends = np.cumsum(np.bincount(first, minlength=1 << bits))

    def one(piece: int) -> T:
        these = rows[ends[piece - 1] if piece else 0 : ends[piece]]
        found = _ordered(keys[these], bits)
        return work(Ordered(these[found.rows], found.new_person, found.new_hash))

    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(one, range(1 << bits)))


def _ordered(index: pl.DataFrame, same: int = 0) -> Ordered:
    """The rows of a piece in order. ``same``: how many first bits its persons have in common."""
    who = index[WHO].to_numpy()
    hashes, bits = (index[HASH].to_numpy(), _HASH_BITS) if HASH in index.columns else (None, 0)
    rows, packed = _sorted(who << np.uint64(same), hashes, bits)
    found = _compared(index, rows)
    new_group = _differs(packed >> np.uint64(bits))
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


def _sorted(who: Words, hashes: Words | None, hash_bits: int) -> tuple[NDArray[np.int64], Words]:
    """The rows in the order of the first bits of their persons and of their hashes, and these bits."""
    bits = len(who).bit_length()
    packed = who >> np.uint64(bits + hash_bits)
    if hashes is not None:
        packed <<= np.uint64(hash_bits)
        packed |= hashes >> np.uint64(64 - hash_bits)
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
