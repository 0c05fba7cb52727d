"""One position out of many, with probabilities proportional to 2**weight * exp(-rate * level).

Positions come in groups of equal probability. A uniform number is compared with sums of masses: in floats, and in
balls where floats leave it open. Proof: ``weighted.proof.md``; the numbers in the comments are those of its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from snugdp.noise.exact import entropy
from snugdp.noise.exact.coins import MAX_EXPONENT, exp_neg
from snugdp.noise.exact.refine import START, Bits, exactly, refine
from snugdp.numerics import balls
from snugdp.secrecy.private_state import PrivateState

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_WEIGHT = 64
_MASS_ERROR = 2.0**-44  # relative, of one mass
_SLOWEST, _FASTEST = Fraction(1, 1 << 200), Fraction(1 << 70)  # rates beyond have the same float masses
_FAR_BITS = 172  # what is far has lost at least so many
_BITS_PER_UNIT = Fraction(10, 7)  # below the 1/ln 2 by which exp(-x) loses bits


@dataclass(frozen=True, eq=False, repr=False)
class Groups(PrivateState):
    """Groups of positions: ``count`` of them from ``first`` on, each of mass 2**weight * exp(-rate * level).

    Where groups overlap, masses add up. Groups with a count below 1 are empty. Weights are between 0 and 64.
    ``others``: further groups, made only if a draw needs them; ``others_level``: no level of theirs is below;
    ``others_mass``: their counts times 2**weight add up to no more.
    """

    first: Integers
    count: Integers
    level: Integers
    weight: Integers
    others: Callable[[], Groups] | None = None
    others_level: int = 0
    others_mass: int = 0

    @property
    def arrays(self) -> tuple[Integers, Integers, Integers, Integers]:
        """The groups that are there."""
        return self.first, self.count, self.level, self.weight

    def whole(self) -> Groups:
        """All groups, in the order in which a draw counts them."""
        return self if self.others is None else joined(replace(self, others=None), self.others())

    def nonempty(self) -> Groups:
        """The same without empty groups, and with weights in their bounds."""
        some, inside = self.count > 0, (self.weight >= 0) & (self.weight <= MAX_WEIGHT)
        if some.all() and inside.all():
            return self
        weight = np.clip(self.weight, 0, MAX_WEIGHT)[some]
        kept = self.first[some], self.count[some], self.level[some], weight
        return Groups(*kept, self.others, self.others_level, self.others_mass)


def joined(one: Groups, other: Groups) -> Groups:
    """The groups of one, then those of the other; neither has others."""
    pairs = zip(one.arrays, other.arrays, strict=True)
    first, count, level, weight = (np.concatenate(pair) for pair in pairs)
    return Groups(first, count, level, weight)


def weighted_choice(groups: Groups, rate: Fraction) -> int:
    """A position with probability proportional to the masses that it has in its groups; 0 if there is no position.

    Guarantee: exactly this law (``weighted.proof.md``, Theorem 1).
    """
    uniform = Bits()
    uniform.extend(START)  # 1
    place = by_floats(groups, rate, uniform.value)
    if place is None:
        groups = groups.whole()
        place = by_balls(groups, rate, uniform) if len(groups.count) else None
    if place is None:
        return 0
    return int(groups.first[place]) + entropy.below(int(groups.count[place]))  # 5


def masses(groups: Groups, rate: Fraction) -> tuple[Floats, float]:
    """The masses in floats, over that of a single position of the lowest level, and what they may lack in all."""
    least = int(groups.level.min())
    gap = (groups.level - least).view(np.uint64)
    half = gap.astype(np.float64) * (float(min(max(rate, _SLOWEST), _FASTEST)) / 2)
    near = half <= MAX_EXPONENT
    root = exp_neg(np.where(near, half, MAX_EXPONENT))
    size = np.ldexp(groups.count.astype(np.float64), groups.weight.astype(np.int32))
    far = math.ldexp(float(size[~near].sum()), -_FAR_BITS)
    beyond = _beyond(groups, rate, least)
    found: Floats = np.where(near, size * (root * root), 0.0)
    return found, 2 * (far + beyond)


def _beyond(groups: Groups, rate: Fraction, least: int) -> float:
    """No less than the masses of the other groups."""
    if groups.others is None:
        return 0.0
    if groups.others_level < least:
        return math.inf
    lost = math.floor(rate * (groups.others_level - least) * _BITS_PER_UNIT)
    return math.ldexp(float(groups.others_mass), -min(lost, 900))


def by_floats(groups: Groups, rate: Fraction, uniform: int) -> int | None:
    """The group, where floats can tell which it is for every continuation of the first 64 bits of the uniform."""
    k = len(groups.count)
    if not k:
        return None
    mass, slack = masses(groups, rate)  # 2
    block = 1 << (k.bit_length() + 1) // 2
    table = np.zeros((-(-k // block), block))
    table.ravel()[:k] = mass
    ends = np.cumsum(table.sum(axis=1))
    total = float(ends[-1])
    error = total * (3 * (_MASS_ERROR + (block + len(ends)) * 2.0**-52) + 2.0**-50) + 3 * slack
    goal = (uniform + 0.5) * 2.0**-START * total
    row = min(int(np.searchsorted(ends, goal)), len(ends) - 1)
    before = float(ends[row - 1]) if row else 0.0
    inner = before + np.cumsum(table[row])
    column = min(int(np.searchsorted(inner, goal)), block - 1)
    low, high = float(inner[column - 1]) if column else before, float(inner[column])
    return row * block + column if low + error < goal < high - error else None  # 3


def by_balls(groups: Groups, rate: Fraction, uniform: Bits) -> int:
    """The group, on the same bits read further: all its groups are there."""
    least = int(groups.level.min())
    gaps, which = np.unique((groups.level - least).view(np.uint64), return_inverse=True)
    level, size = which.tolist(), [n << w for n, w in zip(groups.count.tolist(), groups.weight.tolist(), strict=True)]

    def sums(bits: int) -> tuple[arb, list[arb]]:
        factors = [balls.exp(-exactly(rate * gap)) for gap in gaps.tolist()]
        edges, total = [], arb(0)
        for at, count in zip(level, size, strict=True):
            total += factors[at] * count
            edges.append(total)
        return uniform.ball(bits) * total, edges

    return refine(sums, _place, 2 * START)  # 4


def _place(found: tuple[arb, list[arb]]) -> int | None:
    """Between which two edges the number in the ball is, if that is certain; above the last but one it is the last."""
    goal, edges = found
    for place, edge in enumerate(edges[:-1]):
        if goal < edge:
            return place
        if not goal > edge:
            return None
    return len(edges) - 1
