"""A keyed hash of 64 bits for columns of numbers and text: the same on every machine and in every version.

It decides which rows of a person are kept, and to which part of a table a person belongs. No guarantee rests on how
good it is: rows and persons that it cannot tell apart are told apart by what they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Words: TypeAlias = NDArray[np.uint64]

_MASK = (1 << 64) - 1
_WORD = 8  # bytes
_BLOCK = 1 << 16  # numbers that fit into a cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(words: Words) -> Words:
    """A permutation of the numbers below 2**64 in which every bit of the image depends on all bits."""
    found = words.copy()
    for start in range(0, len(found), _BLOCK):
        part = found[start : start + _BLOCK]
        part ^= part >> np.uint64(30)
        part *= np.uint64(0xBF58476D1CE4E5B9)
        part ^= part >> np.uint64(27)
        part *= np.uint64(0x94D049BB133111EB)
        part ^= part >> np.uint64(31)
    return found


def subkeys(key: int, number: int) -> Words:
    """As many keys as are needed, from one below 2**128.

    >>> subkeys(1, 2).tolist() == subkeys(1, 3)[:2].tolist() != subkeys(2, 2).tolist()
    True
    """
    counters = np.arange(1, number + 1, dtype=np.uint64) * _GOLDEN
    low, high = (np.full(number, part, dtype=np.uint64) for part in (key & _MASK, key >> 64))
    return mixed(mixed(mixed(counters + low) ^ high) + low)


def text_words(texts: pl.Series, key: np.uint64) -> Words:
    """A keyed word for every text, from the bytes of its UTF-8; null counts as empty text.

    A text is cut into words of eight bytes, of which each is mixed with its place; these are added up, and mixed with
    the length.
    """
    filled = texts.fill_null("")
    sizes = filled.str.len_bytes().to_numpy().astype(np.int64)
    bare = np.frombuffer(str(filled.str.join("").item()).encode(), dtype=np.uint8) if len(filled) else np.empty(0, "u1")
    counts = -(-sizes // _WORD)
    ends = np.cumsum(counts)
    firsts = ends - counts
    padded = np.zeros(int(counts.sum()) * _WORD, dtype=np.uint8)
    padded[np.arange(len(bare)) + np.repeat(firsts * _WORD - (np.cumsum(sizes) - sizes), sizes)] = bare
    places = (np.arange(len(padded) // _WORD) - np.repeat(firsts, counts)).astype(np.uint64)
    parts = mixed(padded.view("<u8").astype(np.uint64) ^ mixed(places * _GOLDEN + key))
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(parts, dtype=np.uint64)])
    return mixed((running[ends] - running[firsts]) ^ mixed(sizes.astype(np.uint64) + key))
