"""What a row adds to the sums from which scores follow, and how far it moves them. Proof: ``scores.proof.md``.

A *part* is a vector of whole numbers: counts of disjoint cells, or the sums of a bounded number and of its spread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.scores.images import CELLS, Integers
from snugdp.propose.share import Share

SPREADS = {True: Fraction(1, 2), False: Fraction(14, 5)}  # the factor of t(1 - t), by whether the noise is pure


@dataclass(frozen=True)
class SumPart:
    """A part of the sums: so many numbers, and what bounds what one row adds to them.

    ``reach``: for pure noise the sum of the absolute values, and for Gaussian noise that of the squares. ``units``: by
    which each number is divided for that.
    """

    name: str
    units: tuple[int, ...]
    reach: Mapping[bool, Fraction]

    @property
    def size(self) -> int:
        """How many numbers."""
        return len(self.units)


def counts(name: str, cells: int) -> SumPart:
    """Counts of disjoint cells: a row is in one of them at most (Lemma 2)."""
    return SumPart(name, (1,) * cells, {True: Fraction(1), False: Fraction(1)})


def pair(name: str) -> SumPart:
    """Sums of t and 1 - t, for t between 0 and 1 (Lemma 3, without the spread)."""
    return SumPart(name, (1, 1), {True: Fraction(CELLS), False: Fraction(CELLS**2)})


def bounded(name: str) -> SumPart:
    """Sums of t, 1 - t and a multiple of t(1 - t) (Lemma 3)."""
    return SumPart(name, (1, 1, CELLS), {True: CELLS * (1 + SPREADS[True] / 4), False: Fraction(CELLS**2)})


def explained(name: str) -> SumPart:
    """The same of the target, and the sums of the squared error q and of a multiple of q(1 - q) (Lemma 4)."""
    reach = {True: CELLS * (2 + SPREADS[True] / 4), False: Fraction(2 * CELLS**2)}
    return SumPart(name, (1, 1, CELLS, 1, CELLS), reach)


def moves(parts: tuple[SumPart, ...], share: Share) -> tuple[Fraction, ...]:
    """How far one row moves each sum, as ``JointNoise`` wants it; the last one counts rows without a score."""
    factor = 1 if share.neighbours is Neighbours.ADD_REMOVE else 2  # 6
    weight = len(parts)  # 5
    power = 1 if share.is_pure else 2
    each = (part.reach[share.is_pure] * weight * factor * unit**power for part in parts for unit in part.units)
    return (*each, Fraction(factor))


def spread(cells: Integers, pure: bool) -> Integers:
    """A multiple of t(1 - t), rounded down, of whole numbers t of cells; in as many parts of a cell as there are cells.

    >>> spread(np.array([0, CELLS // 2]), True).tolist(), spread(np.array([CELLS // 2]), False).tolist()
    ([0, 2097152], [11744051])
    """
    factor = SPREADS[pure]
    found: Integers = cells * (CELLS - cells) * factor.numerator // factor.denominator  # 4
    return found


def triple(cells: Integers, pure: bool) -> list[Integers]:
    """What each row adds to a bounded part."""
    return [cells, CELLS - cells, spread(cells, pure)]


def rounded(numerator: Integers, denominator: int) -> Integers:
    """The nearest whole numbers of cells of a ratio, at most all of them.

    >>> rounded(np.array([0, 1, 5]), 2).tolist() == [0, CELLS // 2, CELLS]
    True
    """
    found: Integers = np.minimum((2 * CELLS * numerator + denominator) // (2 * denominator), CELLS)
    return found
