"""How far one person with all rows moves sums. Proof: ``persons.proof.md``, Theorem 1; comments name its lines."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from snugdp.core.guarantee import Neighbours
from snugdp.mechanisms.statistics.joint import JointNoise
from snugdp.propose.share import Share


@dataclass(frozen=True)
class PersonSensitivity:
    """The most that one person changes a vector: squared in the Euclidean norm, and in the sum of absolute changes.

    ``l1`` is None where nothing bounds it: then there is no pure noise.
    """

    l2_squared: Fraction
    l1: Fraction | None = None

    def noise(self, share: Share, numbers: int, on: str = "sums") -> JointNoise:
        """Noise for so many numbers that move together. Guarantee: the cost of the share (Theorem 1)."""
        if not share.is_pure:
            return JointNoise(share, (self.l2_squared,) * numbers, on)
        if self.l1 is None:
            raise ValueError("a Euclidean cap does not bound what pure noise has to hide: give a delta greater than 0")
        return JointNoise(share, (self.l1,) * numbers, on)


def rows_counted(kept: int) -> PersonSensitivity:
    """Of the number of rows, so many of each person: in both relations, as the number of rows is private."""
    return PersonSensitivity(Fraction(kept**2), Fraction(kept))  # 1


def total_within(kept: int, lower: Fraction, upper: Fraction, neighbours: Neighbours) -> PersonSensitivity:
    """Of the sum of numbers between two bounds, of so many rows of each person at most; there may be fewer."""
    low, high = min(Fraction(0), kept * lower), max(Fraction(0), kept * upper)
    most = max(-low, high) if neighbours is Neighbours.ADD_REMOVE else high - low  # 2
    return PersonSensitivity(most**2, most)


def length_capped(cap: Fraction, neighbours: Neighbours, *, nonnegative: bool = False) -> PersonSensitivity:
    """Of a vector of sums to which each person adds one of at most this length.

    ``nonnegative``: no two such vectors have a negative product, as with counts, and with Gram matrices.
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return PersonSensitivity(cap**2)  # 3
    return PersonSensitivity((2 if nonnegative else 4) * cap**2)  # 4


def cells_of_rows(kept: int, neighbours: Neighbours) -> PersonSensitivity:
    """Of a histogram of so many rows of each person at most, in any cells."""
    added = neighbours is Neighbours.ADD_REMOVE
    return PersonSensitivity(Fraction(kept**2 if added else 2 * kept**2), Fraction(kept if added else 2 * kept))  # 5


def cells_counted(cells: int, each: Fraction, neighbours: Neighbours) -> PersonSensitivity:
    """Of a histogram in which each person is in so many cells at most, with at most ``each`` in one."""
    times = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    return PersonSensitivity(times * cells * each**2, times * cells * each)  # 6


def of_weighted_rows(weight: Fraction, of_row: Fraction) -> PersonSensitivity:
    """Of a sum over rows with weights of at most ``weight`` for each person, of vectors of at most this length."""
    return PersonSensitivity((weight * of_row) ** 2)  # 7
