"""What one person contributes, bounded: rows that are kept, weights, and vectors cut to a length; all exact.

Each is a function of that person's own rows, so that neighbours stay neighbours. Proof: ``persons.proof.md``, Lemmas 1
to 3.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]

WEIGHT_UNIT = math.lcm(*range(1, 16))  # of a row's weight: parts of up to 15 rows are exact, and sums have few bits
_SAFE = 1 << 62
_FINE = 32  # bits below a unit with which a length is taken


def kept_rows(persons: Integers, order: Integers, most: int) -> NDArray[np.bool_]:
    """Which rows stay: of each person the first ``most`` by ``order``, a function of a row's content (Lemma 1).

    Equal rows of a person have equal places in the order; which of them stay has no meaning.

    >>> kept_rows(np.array([7, 5, 7, 7]), np.array([3, 9, 1, 2]), 2)
    array([False,  True,  True,  True])
    """
    if most < 1:
        raise ValueError("the number of rows that a person may have must be at least 1")
    sequence = np.lexsort((order, persons))
    sorted_persons = persons[sequence]
    first = np.flatnonzero(np.concatenate([np.ones(min(1, len(persons)), bool), np.diff(sorted_persons) != 0]))
    place = np.arange(len(persons)) - np.repeat(first, np.diff(first, append=len(persons)))
    kept = np.empty(len(persons), dtype=bool)
    kept[sequence] = place < most
    return kept


def row_weights(rows: Integers, most: int, unit: int = WEIGHT_UNIT) -> Integers:
    """The weight of each row of persons with so many rows, in units: the part ``min(1, most/rows)``, rounded down.

    A person's rows weigh at most ``most * unit`` together (Lemma 2).

    >>> row_weights(np.array([1, 2, 3, 7]), 2, 60)
    array([60, 60, 40, 17])
    """
    if most < 1 or unit < 1 or most * unit >= _SAFE:
        raise ValueError("the weight of a person must be at least 1 and have at most 62 bits")
    weights: Integers = unit * np.minimum(rows, most) // rows
    return weights


def length_cut(vectors: Integers, cap: int) -> Integers:
    """Vectors of whole numbers, one for each person, scaled down to a length of at most ``cap`` (Lemma 3).

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
