"""Losses that take finitely many levels, and their sums: polynomials with the probabilities as coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpz_poly

MOST = 2048  # levels that are looked at: beyond it neighbouring ones are put together, at the larger loss
_KEPT = 1 << 16  # levels of a sum that is not finished
_BITS = 320  # probabilities are whole multiples of 2**-320, rounded up


@dataclass(frozen=True)
class Levels:
    """A loss of ``step * (first + i)`` with probability at most ``weights[i] * 2**-320``.

    Guarantee: sums are never below the exact ones, in loss or probability (composition.proof.md, Lemma 5).

    >>> coin = Levels.of([(Fraction(1), Fraction(1, 2)), (Fraction(2), Fraction(1, 2))])
    >>> [(int(shift), float(weight)) for shift, weight in coin.plus(coin).pairs()]
    [(2, 0.25), (3, 0.5), (4, 0.25)]
    """

    step: Fraction
    first: int
    weights: tuple[int, ...]

    @classmethod
    def none(cls) -> Levels:
        """No loss, for certain."""
        return cls(Fraction(1), 0, (1 << _BITS,))

    @classmethod
    def of(cls, levels: Sequence[tuple[Fraction, Fraction]]) -> Levels:
        """From losses and their probabilities."""
        common = math.lcm(*(shift.denominator for shift, _ in levels))
        places = [int(shift * common) for shift, _ in levels]
        unit = math.gcd(*(place - places[0] for place in places), places[0]) or 1
        whole = [math.ceil(weight * 2**_BITS) for _, weight in levels]
        return _gathered(Fraction(unit, common), zip((place // unit for place in places), whole, strict=True))

    def plus(self, other: Levels) -> Levels:
        """The sum of two independent losses."""
        if self == Levels.none() or other == Levels.none():
            return other if self == Levels.none() else self
        step = _common(self, other)
        one, two = self.at(step), other.at(step)
        if not one.step == two.step == step:  # two steps in one sum would be wrong in silence
            raise RuntimeError("losses on different grids cannot be added")
        product = fmpz_poly(list(one.weights)) * fmpz_poly(list(two.weights))
        sums = tuple(-(-int(weight) >> _BITS) for weight in product)  # line 2
        return Levels(step, one.first + two.first, sums).coarse(_KEPT)

    def coarse(self, most: int = MOST) -> Levels:
        """At most so many levels."""
        factor = -(-len(self.weights) // most)
        return self.at(self.step * factor) if factor > 1 else self

    def at(self, step: Fraction) -> Levels:
        """With losses rounded up to multiples of another step."""
        if step == self.step:
            return self
        ratio = self.step / step
        places = (math.ceil((self.first + i) * ratio) for i in range(len(self.weights)))  # line 1
        return _gathered(step, zip(places, self.weights, strict=True))

    def pairs(self) -> Iterator[tuple[Fraction, Fraction]]:
        """Losses and their probabilities; those of no probability are left out."""
        for i, weight in enumerate(self.weights):
            if weight:
                yield self.step * (self.first + i), Fraction(weight, 1 << _BITS)


def _gathered(step: Fraction, places: Iterable[tuple[int, int]]) -> Levels:
    total: dict[int, int] = {}
    for place, weight in places:
        total[place] = total.get(place, 0) + weight
    first, last = min(total), max(total)
    if last - first >= _KEPT:  # far apart: with a larger step
        factor = -(-(last - first + 1) // MOST)
        return _gathered(step * factor, ((-(-place // factor), weight) for place, weight in total.items()))
    return Levels(step, first, tuple(total.get(place, 0) for place in range(first, last + 1)))


def _common(one: Levels, other: Levels) -> Fraction:
    """The finer of two steps where the coarser is a multiple of it and not too many levels come of it; or the coarser.

    Steps that a call of ``at`` would have to enlarge again are not fine enough to keep.
    """
    fine, wide = min(one.step, other.step), max(one.step, other.step)
    longest = max(len(one.weights) * one.step, len(other.weights) * other.step) + wide
    return fine if (wide / fine).denominator == 1 and longest / fine < _KEPT else wide
