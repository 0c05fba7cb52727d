"""The best probabilities with which keys may be shown, and counts that come with them. Proof: ``optimal.proof.md``.

The table is made of whole multiples of a power of two, and every table is checked in exact arithmetic against the two
inequalities that the theorem asks for: rounding can cost a little utility and no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from math import ceil, floor

from snugdp.core.guarantee import Cost, Neighbours
from snugdp.mechanisms.keys.selection import KeySelection
from snugdp.noise import Finite
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

_FINE = 128  # bits of a probability beyond those of delta and w, and of the fraction of w
_SPARE = 1 << 24  # units of delta, times w, that rounding may use up
_LARGE = Fraction(64)  # of epsilon: a table for less is one for more, and hardly worse here
MAX_COUNT = 1 << 20  # entries of a table


@dataclass(frozen=True)
class KeyTable:
    """With which probability a key of n owners is shown: ``chance(n)``, 0 for n = 0 and 1 from ``certain`` on.

    ``increments``: of the table, from n = 1 on, in units of their sum.

    Guarantee: (epsilon, delta)-DP for one count that moves by one (``optimal.proof.md``, Theorem 1).

    >>> table = key_table(1, 1e-6)
    >>> table.certain, float(table.chance(1)), round(float(table.chance(14)), 6)
    (28, 1e-06, 0.699887)
    """

    increments: tuple[int, ...]

    @property
    def certain(self) -> int:
        """The least count that is always shown."""
        return len(self.increments)

    def chance(self, count: int) -> Fraction:
        """The probability that a key with this count is shown."""
        return Fraction(sum(self.increments[: max(count, 0)]), self.law.total)

    @property
    def threshold(self) -> int:
        """A key is shown if its noisy count reaches this."""
        return self.certain // 2 + 1

    @cached_property
    def law(self) -> Finite:
        """The noise: ``threshold - j`` as likely as the j-th increment."""
        return Finite(self.threshold - self.certain, self.increments[::-1])


@lru_cache(maxsize=64)
def key_table(epsilon: Real, delta: Real) -> KeyTable:
    """The optimal table for one key an owner, under add/remove."""
    level, failure = rational(epsilon, "epsilon"), rational(delta, "delta")
    if level <= 0 or not 0 < failure < 1:
        raise ValueError("keys that are not listed need epsilon > 0 and 0 < delta < 1; 1e-6 is typical")
    ratio = ratio_below(min(level, _LARGE))
    one = 1 << (_FINE + ceil(1 / failure).bit_length() + ceil(ratio).bit_length())
    most = floor(failure * one)
    increments = tuple(b - a for a, b in pairwise(_table(ratio, most - _SPARE * ceil(ratio), one)))
    if not _allowed(increments, ratio, most):
        raise AssertionError("the table of keys is not private: this is a mistake in snugdp")
    return KeyTable(increments)


def ratio_below(epsilon: Fraction) -> Fraction:
    """A rational that is at least 1 and at most exp(epsilon), and agrees with it to many bits."""
    value = balls.enclose(lambda: balls.ball(epsilon).exp(), 2 * _FINE)
    with balls.precision(3 * _FINE):
        end = balls.exact(value.lower())
    return max(Fraction(int(end * (1 << _FINE)), 1 << _FINE), Fraction(1))


def _table(ratio: Fraction, delta: int, one: int) -> list[int]:
    """pi(0), pi(1), ... up to ``one``, which stands for certainty."""
    up, down = ratio.numerator, ratio.denominator
    chances = [0]
    while chances[-1] < one:  # line 1
        if len(chances) > MAX_COUNT:
            raise ValueError(
                f"epsilon is too small for keys that are not listed: a key would need {MAX_COUNT:,} rows to be shown. "
                "Take a larger epsilon or delta, or list the keys"
            )
        last = chances[-1]
        first = up * last // down + delta  # line 2
        second = one - -(-(one - last - delta) * down // up)  # line 3
        chances.append(min(first, second, one))
    return chances


def _allowed(increments: Sequence[int], ratio: Fraction, delta: int) -> bool:
    """Whether the law of the increments and the same law moved by one are within (ln ratio, delta), both ways."""
    up, down = ratio.numerator, ratio.denominator
    ends = [0, *increments, 0]
    more = sum(max(0, down * b - up * a) for a, b in pairwise(ends))  # line 4
    fewer = sum(max(0, down * a - up * b) for a, b in pairwise(ends))  # line 5
    return max(more, fewer) <= down * delta


def optimal_selection(epsilon: Fraction, delta: Fraction, neighbours: Neighbours, keys: int = 1) -> KeySelection:
    """The keys that this much pays for, where an owner has at most ``keys`` of them.

    Guarantee: cost (0, epsilon, delta) in the relation (``optimal.proof.md``, Theorem 2).
    """
    moved = keys if neighbours is Neighbours.ADD_REMOVE else 2 * keys
    table = key_table(epsilon / moved, delta / moved)
    cost = Cost(epsilon=epsilon, delta=delta, neighbours=neighbours)
    return KeySelection(table.law, table.threshold, keys, cost)
