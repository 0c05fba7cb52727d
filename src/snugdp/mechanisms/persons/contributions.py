"""Vectors that persons contribute, cut to a length, in whole numbers. Proof: ``persons.proof.md``, Lemma 2.

Which rows of a person are kept, and their weights, is in ``tables.persons``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]

_SAFE = 1 << 62
_FINE = 32  # bits below a unit with which a length is taken


def length_cut(vectors: Integers, cap: int) -> Integers:
    """Vectors of whole numbers, one for each person, scaled down to a length of at most ``cap`` (Lemma 2).

    >>> length_cut(np.array([[3, 4], [30, -41]]), 10).tolist()
    [[3, 4], [5, -8]]
    """
    if cap < 0:
        raise ValueError("a cap on the length must be at least 0")
    cut = vectors.copy()
    for place in np.flatnonzero(_longer(vectors, cap)):
        cut[place] = _scaled([int(entry) for entry in vectors[place]], cap)
    return cut


def _longer(vectors: Integers, cap: int) -> NDArray[np.bool_]:
    """Which are longer than the cap; in whole numbers of any size, where 64 bits could be too few."""
    largest = max(abs(int(end)) for end in (vectors.min(initial=0), vectors.max(initial=0)))
    safe = largest**2 * vectors.shape[-1] < _SAFE
    squares = (vectors * vectors if safe else vectors.astype(object) ** 2).sum(axis=-1)
    return np.asarray(squares > cap**2, dtype=bool)


def _scaled(vector: list[int], cap: int) -> list[int]:
    square = sum(entry * entry for entry in vector)
    length = math.isqrt((square << 2 * _FINE) - 1) + 1  # 2**32 lengths, rounded up
    return [(abs(entry) * cap << _FINE) // length * (1 if entry > 0 else -1) for entry in vector]


def gram_square(rows: list[list[int]]) -> int:
    """The squared Frobenius norm of the sum of x x' over a person's rows: of all products of two rows, the squares."""
    columns = list(zip(*rows, strict=True))
    products = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in columns] for x in columns]
    return sum(entry * entry for line in products for entry in line)
