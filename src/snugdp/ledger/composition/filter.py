"""Whether a ledger takes one more release: the two ways to add up, and how much of the budget is left by each.

By addition a release counts with the (epsilon, delta) that it announced. Tightly composed, it counts with its whole
cost, and Gaussian parts add in squares (``limits``). Both are privacy filters: what to ask next may depend on all
answers so far. Statements and proofs: limits.proof.md, Theorems 3, 4 and 5.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from snugdp.accounting import gaussian
from snugdp.core.guarantee import Budget, Cost
from snugdp.ledger.composition.limits import Limits, Remaining
from snugdp.numerics import balls
from snugdp.serial import costs

_MIN_EPSILON = Fraction(1, 10**12)  # epsilon of a Gaussian release, however small
_SHARE = Fraction(1, 100)  # of a ledger's delta, for a Gaussian release that has announced no delta


class Composition(enum.Enum):
    """How the releases of a ledger add up. It is chosen when the ledger is made, and stays.

    Attributes
    ----------
    ADDITION
        Every release counts with the epsilon and the delta that it announced, in any order.
    TIGHT
        Every release counts with its whole cost; Gaussian parts add in squares. For many releases of one kind.
    BOTH
        A release is taken if either way takes it, each with half of the delta. A small pure release, such as a count
        with Laplace noise, is composed as a Gaussian one, so that several times as many fit.

    Examples
    --------
    >>> Composition("addition") is Composition.ADDITION
    True
    """

    ADDITION = "addition"
    TIGHT = "tight"
    BOTH = "both"

    @classmethod
    def of(cls, value: Composition | str | None, budget: Budget | Cost) -> Composition:
        """The way itself, or the one of this name; by default addition, and for caps the only one that has them."""
        if value is None:
            return cls.TIGHT if isinstance(budget, Cost) else cls.ADDITION
        if value not in {one.value for one in cls} and not isinstance(value, cls):
            raise ValueError('composition must be "addition", "tight" or "both"')
        way = cls(value)
        if isinstance(budget, Cost) and way is not cls.TIGHT:
            raise ValueError(
                'caps on the parts of a cost need composition="tight"; to add up what releases announce, give a '
                "Budget(epsilon, delta)"
            )
        return way

    @property
    def adds(self) -> bool:
        """Whether what releases announce is added up."""
        return self is not Composition.TIGHT

    @property
    def composes(self) -> bool:
        """Whether whole costs are composed."""
        return self is not Composition.ADDITION


class Spent(NamedTuple):
    """What was spent, in both ways: costs composed, and what was announced added up (epsilon and delta alone)."""

    composed: Cost
    announced: Cost


@dataclass(frozen=True)
class Filter:
    """What a ledger accepts.

    Guarantee: if every charge is judged by ``filter = filter.after(before, total)`` and taken only if
    ``filter.covers(total)``, and every release satisfies what it announced, then all releases together satisfy the
    budget, however they are chosen from earlier answers (limits.proof.md: by addition Theorem 4, tightly Theorem 3,
    by either of the two Theorem 5).

    >>> zero = Spent(Cost(), Cost())
    >>> total = Spent(Cost(mu=0.2), Cost(epsilon=1, delta=1e-6))
    >>> Filter.open(Budget(1, 1e-6), Composition.ADDITION).after(zero, total).covers(total)
    True
    """

    budget: Budget | Cost
    composition: Composition
    tight: Limits | None

    @classmethod
    def open(cls, budget: Budget | Cost, composition: Composition) -> Filter:
        """Before the first charge."""
        share = budget
        if composition is Composition.BOTH and isinstance(budget, Budget):
            share = Budget(budget.epsilon, budget.delta / 2, budget.neighbours)  # Theorem 5, line 1
        return cls(budget, composition, Limits.open(share) if composition.composes else None)

    def after(self, before: Spent, total: Spent) -> Filter:
        """The filter for a charge that takes the total from ``before`` to ``total``: this one, or with new limits."""
        if self.tight is None:
            return self
        return self.with_limits(self.tight.after(before.composed, total.composed))

    def with_limits(self, limits: Limits) -> Filter:
        """The same with these limits."""
        return self if limits is self.tight else Filter(self.budget, self.composition, limits)

    def covers(self, total: Spent) -> bool:
        """Whether this total may be spent."""
        composed = self.tight is not None and self.tight.covers(total.composed)  # Theorem 5, line 3
        return composed or (self._left is not None and self._sums_to_at_most(total.announced))

    def _sums_to_at_most(self, announced: Cost) -> bool:
        """Theorem 4, line 2."""
        announced.neighbours.require(self.budget.neighbours)
        assert self._left is not None
        epsilon, delta = self._left
        return announced.epsilon <= epsilon and announced.delta <= delta

    @cached_property
    def _left(self) -> tuple[Fraction, Fraction] | None:
        """The epsilon and the delta for what is added up."""
        if not self.composition.adds or isinstance(self.budget, Cost):
            return None
        half = 2 if self.composition is Composition.BOTH else 1
        return self.budget.epsilon, self.budget.delta / half

    def remaining(self, total: Spent) -> Remaining:
        """The largest further charge."""
        tight = None if self.tight is None else self.tight.remaining(total.composed)
        if self._left is None or not self._sums_to_at_most(total.announced):
            return tight or Remaining.nothing()
        epsilon, delta = self._left[0] - total.announced.epsilon, self._left[1] - total.announced.delta
        added = Remaining(Fraction(gaussian.mu(epsilon, delta)) ** 2, epsilon, delta, (epsilon, delta))
        return added if tight is None else added.or_else(tight)


def satisfies(cost: Cost, announced: Cost) -> bool:
    """Whether a release of this cost is private by what it announced: certified, and never a matter of trust."""
    less = (
        cost.neighbours is announced.neighbours and cost.epsilon <= announced.epsilon and cost.delta <= announced.delta
    )
    return (less and announced.delta < 1 and is_pure(cost)) or _certified(cost, announced)


@lru_cache(maxsize=1024)
def _certified(cost: Cost, announced: Cost) -> bool:
    if not announced.epsilon:
        return not (cost.epsilon or cost.mu_squared or cost.atoms or cost.variation) and cost.delta <= announced.delta
    return announced.delta < 1 and cost.fits(Budget(announced.epsilon, announced.delta, announced.neighbours))


@lru_cache(maxsize=1024)
def as_gaussian(cost: Cost, budget: Budget) -> Cost | None:
    """A pure cost as a Gaussian one, if more releases of this size fit the budget so than by their epsilons.

    None for any other cost, and for a pure one that is too large for that (limits.proof.md, Lemma 6).
    """
    most = Fraction(gaussian.mu(budget.epsilon, budget.delta / 2)) ** 2 if budget.delta else Fraction(0)
    if not is_pure(cost) or not cost.epsilon or cost.epsilon * budget.epsilon >= most:
        return None
    square = Fraction(balls.above(lambda: gaussian.coin(cost.epsilon)))
    if square * budget.epsilon >= most * cost.epsilon:
        return None
    return costs.recorded(Cost(mu_squared=square, delta=cost.delta, neighbours=cost.neighbours))


@lru_cache(maxsize=1024)
def is_gaussian_of(other: Cost, cost: Cost) -> bool:
    """Whether a pure release may count as this Gaussian one: certified (limits.proof.md, Lemma 6)."""
    same = is_pure(cost) and other.neighbours is cost.neighbours and other.delta == cost.delta
    plain = not (other.epsilon or other.variation or other.atoms)
    return same and plain and balls.at_most(lambda: gaussian.coin(cost.epsilon), other.mu_squared)


def pair(announced: Budget) -> Cost:
    """What a budget announces, as it is written down."""
    return costs.recorded(announced.cost)


def counted(cost: Cost, announced: Cost | None, budget: Budget) -> Cost | None:
    """With what a release counts by addition: what it announced, or a pure cost's own parts where they are less.

    None where nothing was announced and nothing can be derived.
    """
    if announced is None:
        return announced_by(cost, budget)
    own = is_pure(cost) and cost.epsilon <= announced.epsilon and cost.delta <= announced.delta
    return announced_by(cost, budget) if own else announced


def is_pure(cost: Cost) -> bool:
    """Whether a cost has an epsilon and a delta, and no other part."""
    return not (cost.mu_squared or cost.variation or cost.atoms)


def announced_by(cost: Cost, budget: Budget, delta: Fraction | None = None) -> Cost | None:
    """The epsilon and delta of a cost for which nothing was announced; None if there are none.

    Of a pure cost its own. Of another one: at this delta, or at its own failure and a hundredth of the ledger's delta.
    """
    return cost if is_pure(cost) else _epsilon_and_delta(cost, budget, delta)


@lru_cache(maxsize=1024)
def _epsilon_and_delta(cost: Cost, budget: Budget, delta: Fraction | None) -> Cost | None:
    at = costs.short(cost.delta + _SHARE * budget.delta if delta is None else delta)
    epsilon = cost.epsilon_at(at) if at < 1 else math.inf
    if not math.isfinite(epsilon):
        return None
    upper = Cost(epsilon=max(Fraction(epsilon), _MIN_EPSILON), delta=at, neighbours=cost.neighbours)
    for _ in range(8):
        if satisfies(cost, upper):
            return upper
        upper = Cost(epsilon=upper.epsilon * Fraction(1 + 2**-30), delta=at, neighbours=cost.neighbours)
    return None


def announced_together(each: Sequence[tuple[Cost, Cost | None]], budget: Budget) -> Cost | None:
    """What several releases announce together, when they are reserved as one.

    Their deltas add up; so do their epsilons, unless the composed cost has less at that delta.
    """
    whole = sum((cost for cost, _ in each[1:]), each[0][0])
    if any(announced is None for _, announced in each):
        return announced_by(whole, budget)
    added = sum((announced for _, announced in each[1:] if announced is not None), each[0][1] or Cost())
    composed = announced_by(whole, budget, added.delta)
    if composed is not None and (composed.epsilon < added.epsilon or not satisfies(whole, added)):
        return composed
    return added
