"""Theorem T: what a Gaussian part, a pure part, a failure probability and atoms leak when they are composed.

An atom is a mechanism whose privacy loss is at most the largest of a few alternatives, each of them a
Gaussian loss plus a shift: objective perturbation is one. Statements and proofs: composition.proof.md.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Required, TypeAlias, TypedDict, Unpack

from flint import arb, fmpz_poly

from snugdp.accounting import gaussian
from snugdp.numerics import balls, roots

_ZERO = Fraction(0)
MOST_COMBINATIONS = 4096
_COARSE = 512  # combinations that are kept where there are more
MAX_LEVELS = 2048  # levels that are looked at: beyond it neighbouring ones are put together, at the larger loss
_MAX_SUM_LEVELS = 1 << 16  # levels of a sum that is not finished
_BITS = 320  # probabilities are whole multiples of 2**-320, rounded up


@dataclass(frozen=True)
class Branch:
    """One alternative of an atom's loss: a Gaussian loss of parameter mu, moved up by ``shift``.

    With a ``weight`` below 1 it applies on an event of at most that probability that is independent of the Gaussian
    loss, and only there.
    """

    mu_squared: Fraction
    shift: Fraction
    weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.mu_squared.numerator < 0 or self.shift.numerator < 0:  # thousands of branches: integers are quicker
            raise ValueError("mu_squared and shift of a branch must be at least 0: no loss can earn credit")
        if not 0 < self.weight.numerator <= self.weight.denominator:
            raise ValueError("the weight of a branch must be above 0 and at most 1")

    def __hash__(self) -> int:
        mu, shift, weight = self.mu_squared, self.shift, self.weight  # the hash of a fraction takes a modular inverse
        integers = (mu.numerator, mu.denominator, shift.numerator, shift.denominator)
        return hash((*integers, weight.numerator, weight.denominator))


@dataclass(frozen=True)
class Atom:
    """A loss that is at most the largest of its alternatives, listed for each direction of the neighbours."""

    add: tuple[Branch, ...]
    remove: tuple[Branch, ...]

    def __post_init__(self) -> None:
        if not self.add or not self.remove:
            raise ValueError("an atom needs at least one branch in each direction")
        if any(sum((branch.weight for branch in side), Fraction(0)) < 1 for side in (self.add, self.remove)):
            raise ValueError("the weights of an atom's branches must add up to at least 1: something always happens")

    @property
    def both_ways(self) -> bool:
        """Whether the two directions have the same branches, in any order."""
        return Counter(self.add) == Counter(self.remove)


def either(*atoms: Atom) -> Atom:
    """What one of these mechanisms costs, whichever of them is chosen by what was released before.

    Guarantee: not below the cost of any of them (composition.proof.md, Lemma 6).

    >>> one, two = (Branch(Fraction(mu), Fraction(0)) for mu in (1, 2))
    >>> [int(branch.mu_squared) for branch in either(Atom((one,), (one,)), Atom((two,), (two,))).add]
    [1, 2]
    """
    return Atom(
        tuple(branch for atom in atoms for branch in atom.add),
        tuple(branch for atom in atoms for branch in atom.remove),
    )


Combinations: TypeAlias = tuple[tuple[Branch, Fraction], ...]  # distinct sums, and how often or likely each is


@dataclass(frozen=True)
class _Cost:
    """A composed cost, its atoms multiplied out."""

    pure: Fraction
    failure: Fraction
    variation: Fraction
    directions: tuple[Combinations, ...]

    def leak(self, epsilon: Fraction) -> arb:
        """Everything but the failure probability, as a ball: the curve that ``epsilon`` inverts."""
        worst = self._direction(self.directions[0], epsilon)
        for combinations in self.directions[1:]:
            worst = worst.max(self._direction(combinations, epsilon))
        if not self.variation:
            return worst
        return worst + (1 + balls.exp(balls.ball(epsilon))) * balls.ball(self.variation)

    def _direction(self, combinations: Combinations, epsilon: Fraction) -> arb:
        """The randomised-response mixture of the sum over the combinations (T.3)."""
        if not self.pure:
            return _sum(combinations, epsilon)
        down = balls.exp(-balls.ball(self.pure))
        return (_sum(combinations, epsilon - self.pure) + down * _sum(combinations, epsilon + self.pure)) / (1 + down)


class CostParts(TypedDict, total=False):
    """The parts of a composed cost, as keyword arguments; what is left out is 0."""

    mu_squared: Required[Fraction]
    pure: Fraction
    failure: Fraction
    variation: Fraction
    atoms: Required[tuple[Atom, ...]]


def delta(*, epsilon: Fraction, **parts: Unpack[CostParts]) -> float:
    """The delta that the composed cost gives at ``epsilon``, any real number; rounded up, at most 1.

    Guarantee: a composition of this cost is (epsilon, delta)-DP in both directions
    (composition.proof.md, Theorem 2).

    >>> half, none = Fraction(1, 2), Fraction(0)
    >>> cost = dict(mu_squared=half**2, pure=half, failure=none, variation=none, atoms=())
    >>> round(delta(**cost, epsilon=Fraction(2)), 9)
    0.000245107
    """
    cost = _composed(**parts)
    return min(1.0, balls.above(lambda: balls.ball(cost.failure) + cost.leak(epsilon)))


def at_most(*, epsilon: Fraction, delta: Fraction, **parts: Unpack[CostParts]) -> bool:
    """Whether the composed cost is proved to give at most ``delta`` at ``epsilon``: decided in balls, not in floats.

    >>> none, one = Fraction(0), Fraction(1)
    >>> at_most(mu_squared=none, pure=one, failure=none, variation=none, atoms=(), epsilon=one, delta=none)
    True
    """
    return _decided(epsilon, delta, **parts)


@lru_cache(maxsize=512)  # a fit asks the same several times, and so does the next one with the same budget
def _decided(epsilon: Fraction, delta: Fraction, **parts: Unpack[CostParts]) -> bool:
    cost = _composed(**parts)
    return delta >= cost.failure and balls.at_most(lambda: cost.leak(epsilon), delta - cost.failure)


def epsilon(*, delta: Fraction, **parts: Unpack[CostParts]) -> float:
    """The smallest epsilon >= 0 at which the composed cost gives at most ``delta``; rounded up.

    Guarantee: a composition of this cost is (epsilon, delta)-DP with the float returned, read in binary or as
    it prints. Infinite if no epsilon does, or if none is found (composition.proof.md, Theorem 2 and Lemma 3).

    >>> half, none = Fraction(1, 2), Fraction(0)
    >>> cost = dict(mu_squared=half**2, pure=half, failure=none, variation=none, atoms=())
    >>> round(epsilon(**cost, delta=Fraction(1, 10**6)), 4)
    2.7026
    """
    cost = _composed(**parts)
    gaussian.probability(delta, "delta")
    goal = delta - cost.failure
    if goal < 0:
        return math.inf
    if balls.at_most(lambda: cost.leak(Fraction(0)), goal):
        return 0.0
    if goal == 0:
        return _without_gaussian(cost)
    high = _enough(cost, goal)
    return roots.smallest(cost.leak, goal, 0.0, high)


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
        return Levels(step, one.first + two.first, sums).coarse(_MAX_SUM_LEVELS)

    def coarse(self, most: int = MAX_LEVELS) -> Levels:
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
    if last - first >= _MAX_SUM_LEVELS:  # far apart: with a larger step
        factor = -(-(last - first + 1) // MAX_LEVELS)
        return _gathered(step * factor, ((-(-place // factor), weight) for place, weight in total.items()))
    return Levels(step, first, tuple(total.get(place, 0) for place in range(first, last + 1)))


def _common(one: Levels, other: Levels) -> Fraction:
    """The finer of two steps where the coarser is a multiple of it and not too many levels come of it; or the coarser.

    Steps that a call of ``at`` would have to enlarge again are not fine enough to keep.
    """
    fine, wide = min(one.step, other.step), max(one.step, other.step)
    longest = max(len(one.weights) * one.step, len(other.weights) * other.step) + wide
    return fine if (wide / fine).denominator == 1 and longest / fine < _MAX_SUM_LEVELS else wide


@lru_cache(maxsize=8)  # a curve of one cost is looked at in many places; some have megabytes of combinations
def _composed(
    *,
    mu_squared: Fraction,
    pure: Fraction = _ZERO,
    failure: Fraction = _ZERO,
    variation: Fraction = _ZERO,
    atoms: tuple[Atom, ...],
) -> _Cost:
    parts = {"mu_squared": mu_squared, "pure": pure, "failure": failure, "variation": variation}
    for name, value in parts.items():
        if value < 0:
            raise ValueError(f"{name} must be at least 0")
    add = _combinations(mu_squared, (atom.add for atom in atoms))
    remove = _combinations(mu_squared, (atom.remove for atom in atoms))
    return _Cost(pure, failure, variation, (add,) if add == remove else (add, remove))


def _combinations(mu_squared: Fraction, atoms: Iterable[tuple[Branch, ...]]) -> Combinations:
    """One alternative from every atom, all ways; equal sums are merged, so k equal atoms give k + 1."""
    sums, levels = {Branch(mu_squared, Fraction(0)): Fraction(1)}, Levels.none()
    for branches in atoms:
        if not any(branch.mu_squared for branch in branches):
            levels = levels.plus(Levels.of([(branch.shift, branch.weight) for branch in branches]))
            continue
        if len(sums) * len(set(branches)) > 2 * MOST_COMBINATIONS and len(sums) > _COARSE:
            sums = _coarser(sums)
        longer: defaultdict[Branch, Fraction] = defaultdict(Fraction)
        for (total, times), (branch, often) in product(sums.items(), Counter(branches).items()):
            both = Branch(total.mu_squared + branch.mu_squared, total.shift + branch.shift)
            longer[both] += times * often * branch.weight
        sums = dict(longer) if len(longer) <= MOST_COMBINATIONS else _coarser(longer)
    if levels == Levels.none():
        return tuple(sums.items())
    pairs = tuple(levels.coarse().pairs())
    return tuple(
        (Branch(total.mu_squared, total.shift + shift), weight if times == 1 else times * weight)
        for total, times in sums.items()
        for shift, weight in pairs
    )


def _coarser(sums: Mapping[Branch, Fraction]) -> dict[Branch, Fraction]:
    """Fewer combinations: beside one Gaussian part, shifts are rounded up to a few that are equally far apart."""
    groups: defaultdict[Fraction, list[Branch]] = defaultdict(list)
    for branch in sums:
        groups[branch.mu_squared].append(branch)
    kept = max(_COARSE // len(groups), 4)
    if kept * len(groups) > MOST_COMBINATIONS:
        raise ValueError(
            f"these atoms have more than {MOST_COMBINATIONS} distinct combinations; "
            "give them equal parameters, which are counted together, or compose fewer"
        )
    fewer: defaultdict[Branch, Fraction] = defaultdict(Fraction)
    for square, branches in groups.items():
        low, high = min(b.shift for b in branches), max(b.shift for b in branches)
        step = (high - low) / kept
        for branch in branches:
            up = low + math.ceil((branch.shift - low) / step) * step if step else low
            fewer[Branch(square, up)] += sums[branch]
    return dict(fewer)


def _sum(combinations: Combinations, epsilon: Fraction) -> arb:
    total = arb(0)
    for branch, times in combinations:
        total += balls.ball(times) * gaussian.delta_ball(branch.mu_squared, epsilon - branch.shift)
    return total


def _without_gaussian(cost: _Cost) -> float:
    """The epsilon of a cost that must leak nothing: finite only if the loss is bounded."""
    branches = [branch for combinations in cost.directions for branch, _ in combinations]
    if cost.variation or any(branch.mu_squared for branch in branches):
        return math.inf
    return balls.above(lambda: balls.ball(cost.pure + max(branch.shift for branch in branches)))


def _enough(cost: _Cost, goal: Fraction) -> float:
    """An epsilon at which the leak is at most ``goal``: infinite if none is found."""
    share = goal if not cost.variation else goal / 2
    high = max(_without_variation(cost, combinations, share) for combinations in cost.directions)
    if not cost.variation:
        return high
    if math.isfinite(high) and balls.at_most(lambda: cost.leak(Fraction(high)), goal):
        return high
    return _lowest(cost, goal)


def _without_variation(cost: _Cost, combinations: Combinations, goal: Fraction) -> float:
    """Each combination gets its share of the goal, at the crude epsilon of one Gaussian (Lemma 3)."""
    count = max(Fraction(1), sum((times for _, times in combinations), Fraction(0)))

    def enough(branch: Branch) -> arb:
        start = balls.ball(cost.pure + branch.shift)
        if branch.mu_squared:
            start += gaussian.epsilon_ball(branch.mu_squared, goal / count).max(arb(0))
        return start

    return max(balls.above(partial(enough, branch)) for branch, _ in combinations)


def _lowest(cost: _Cost, goal: Fraction) -> float:
    """With a variation part the leak falls and then rises: look for a point below the goal (Lemma 3)."""
    if goal <= 2 * cost.variation:
        return math.inf
    left, right = 0.0, balls.above(lambda: (balls.ball(goal / cost.variation) - 1).log())

    def leak(x: float) -> float:
        return balls.above(lambda: cost.leak(Fraction(x)))

    golden = (math.sqrt(5) - 1) / 2
    x, y = right - golden * (right - left), left + golden * (right - left)
    fx, fy = leak(x), leak(y)
    for _ in range(80):
        if min(fx, fy) <= goal:
            return x if fx <= fy else y
        if fx <= fy:
            right, y, fy = y, x, fx
            x = right - golden * (right - left)
            fx = leak(x)
        else:
            left, x, fx = x, y, fy
            y = left + golden * (right - left)
            fy = leak(y)
    return math.inf
