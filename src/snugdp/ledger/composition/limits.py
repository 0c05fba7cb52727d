"""What may still be spent when every charge may be chosen by looking at the answers so far.

"Accept while the total fits" is not enough then: one who looks at a first answer and goes on with the kind of release
that suits it gets more than any total tells. So the limits are fixed at the first charge that has a Gaussian part or
atoms: one box around many charges like that one, and a few lines for everything else. A charge is taken if the new
total stays within one of them. Statements and proofs: limits.proof.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

from flint import arb

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Branch
from snugdp.core.guarantee import Budget, Cost
from snugdp.numerics import balls
from snugdp.numerics.printed import printed_down, root_down
from snugdp.numerics.rationals import typed_down
from snugdp.serial import costs

LINES = (Fraction(7, 10), Fraction(2, 5), Fraction(1, 5))  # where they touch, in parts of the largest mu
SHARES = (Fraction(1, 25), Fraction(3, 20), Fraction(1, 200))  # of delta: the lines' leak, failure, variation
MOST_ATOMS = 32  # in a box
MOST_EQUAL = 64  # charges like the first that the main box makes an effort to hold
_HALVINGS, _MAX_HALVINGS = 4, 24  # halvings of the shares, for many charges like the first, and for the first alone
_STEPS = 30
_MAX_BRANCHES = 4  # of an atom that a box may hold many times
_GRID, _INVERSE_MINIMUM = Fraction(2) ** costs.GRID, Fraction(2) ** 400
_MAX_EPSILON = 10_000  # epsilon; beyond it no variation is taken, for 1 + e^epsilon is too long a number


@dataclass(frozen=True)
class Box:
    """One limit. With ``order`` 0 every part of a total must stay below the same part of ``limit``.

    With an order a > 1 it is a line: a/2 mu^2 + epsilon + what the atoms add at order a stays below ``limit.epsilon``,
    failure and variation below their own parts.
    """

    limit: Cost
    order: Fraction = Fraction(0)

    def covers(self, total: Cost) -> bool:
        """Whether the total is within this limit."""
        if not self.order:
            return within(total, self.limit)
        shared = total.delta <= self.limit.delta and total.variation <= self.limit.variation
        return shared and self.left(total) >= 0

    def left(self, total: Cost) -> Fraction:
        """How much of a line is left."""
        return self.limit.epsilon - self.order / 2 * total.mu_squared - total.epsilon - _atoms(total, self.order)


@dataclass(frozen=True)
class Remaining:
    """The largest further charge: an epsilon and a delta together; or purely Gaussian, pure, or failure only, alone.

    ``mu_squared``, ``pure``, ``failure`` and ``together`` are exact; ``mu``, ``epsilon`` and ``delta`` are floats,
    rounded down. Printed it is what can be spent together, ``alone`` says what can be spent in one kind.
    """

    mu_squared: Fraction
    pure: Fraction
    failure: Fraction
    together: tuple[Fraction, Fraction]  # an epsilon and a delta

    @classmethod
    def nothing(cls) -> Remaining:
        """When nothing is left."""
        return cls(Fraction(0), Fraction(0), Fraction(0), (Fraction(0), Fraction(0)))

    def or_else(self, other: Remaining) -> Remaining:
        """The larger of two, kind by kind; together, the one with the larger epsilon."""
        return Remaining(
            max(self.mu_squared, other.mu_squared),
            max(self.pure, other.pure),
            max(self.failure, other.failure),
            max(self.together, other.together),
        )

    @property
    def mu(self) -> float:
        """The largest Gaussian charge."""
        return _down(root_down(self.mu_squared))

    @property
    def epsilon(self) -> float:
        """The largest pure charge."""
        return _down(self.pure)

    @property
    def delta(self) -> float:
        """The largest charge of a failure."""
        return _down(self.failure)

    def as_dict(self) -> dict[str, str]:
        """Exactly, for JSON."""
        alone = {"mu_squared": str(self.mu_squared), "epsilon": str(self.pure), "delta": str(self.failure)}
        return {**alone, "together_epsilon": str(self.together[0]), "together_delta": str(self.together[1])}

    @property
    def alone(self) -> str:
        """The largest charge of one kind."""
        mu = printed_down(root_down(self.mu_squared))
        return f"mu {mu} or epsilon {printed_down(self.pure)} or delta {printed_down(self.failure)}"

    def __str__(self) -> str:
        epsilon, delta = self.together
        return f"epsilon {printed_down(epsilon)} and delta {printed_down(delta)}"


@dataclass(frozen=True)
class Limits:
    """What a ledger accepts: totals within one of the boxes; before there are any, pure and failure parts.

    Guarantee: if every charge is judged by ``limits = limits.after(before, total)``, with the totals without and with
    it, and taken only if ``limits.covers(total)``, then all releases together satisfy the budget, however amounts,
    kinds and questions are chosen from earlier answers (limits.proof.md, Theorem 3). With a cost as budget, they have
    that cost (Lemma 1).

    >>> limits = Limits.open(Budget(1, 1e-6)).after(Cost(), Cost(mu=0.07))
    >>> limits.covers(Cost(mu=0.234)), limits.covers(Cost(mu=0.07, epsilon=0.6)), limits.covers(Cost(mu=0.236))
    (True, True, False)
    """

    budget: Budget | Cost
    boxes: tuple[Box, ...]

    @classmethod
    def open(cls, budget: Budget | Cost) -> Limits:
        """Before the first charge. A cost as budget is its own box."""
        return cls(budget, (Box(budget),) if isinstance(budget, Cost) else ())

    def after(self, before: Cost, total: Cost) -> Limits:
        """The limits for a charge that takes the total from ``before`` to ``total``: these, or new ones."""
        if self.boxes or isinstance(self.budget, Cost) or not fixes(self.budget, total):
            return self
        return Limits(self.budget, boxes_for(self.budget, before, total))

    def covers(self, total: Cost) -> bool:
        """Whether this total may be spent."""
        total.neighbours.require(self.budget.neighbours)
        if self.boxes or isinstance(self.budget, Cost):
            return any(box.covers(total) for box in self.boxes)
        return not fixes(self.budget, total)

    def remaining(self, total: Cost) -> Remaining:
        """The largest further charge of each kind."""
        if not self.covers(total):
            return Remaining.nothing()
        if not self.boxes and isinstance(self.budget, Budget):
            pure, failure = self.budget.epsilon - total.epsilon, self.budget.delta - total.delta
            return Remaining(Fraction(gaussian.mu(pure, failure)) ** 2, pure, failure, (pure, failure))
        left = Remaining.nothing()
        for box in (box for box in self.boxes if box.covers(total)):
            failure = box.limit.delta - total.delta
            pure = box.left(total) if box.order else box.limit.epsilon - total.epsilon
            square = 2 * box.left(total) / box.order if box.order else box.limit.mu_squared - total.mu_squared
            left = left.or_else(Remaining(square, pure, failure, (pure, failure)))
        return left


def within(cost: Cost, limit: Cost) -> bool:
    """Whether every part of a cost is at most that of the limit, so that the limit dominates it."""
    return (
        cost.neighbours is limit.neighbours
        and cost.mu_squared <= limit.mu_squared
        and cost.epsilon <= limit.epsilon
        and cost.delta <= limit.delta
        and cost.variation <= limit.variation
        and Counter(cost.atoms) <= Counter(limit.atoms)
    )


def fixes(budget: Budget, total: Cost) -> bool:
    """Whether a total has more than pure and failure parts within the budget, so that boxes are needed for it."""
    bounded = not (total.mu_squared or total.variation or total.atoms)
    return not (bounded and total.epsilon <= budget.epsilon and total.delta <= budget.delta)


@lru_cache(maxsize=256)
def legal(budget: Budget, boxes: tuple[Box, ...], before: Cost) -> bool:
    """Whether the boxes, fixed when ``before`` had been spent, keep the budget (Theorem 3; certified)."""
    if any(box.order and (box.order <= 1 or box.limit.mu_squared or box.limit.atoms) for box in boxes):
        return False
    if fixes(budget, before) or not all(box.order or within(before, box.limit) for box in boxes):
        return False
    if len(boxes) == 1 and not boxes[0].order and not before.epsilon:
        return boxes[0].limit.fits(budget)
    left = budget.delta - _common(budget, boxes)
    if len(boxes) == 1 and not boxes[0].order:
        return left >= 0 and _leaks_at_most(budget, before, boxes[0].limit, left)
    leaks = (_leak_of_line(budget, box) if box.order else _leak(budget, before, box.limit) for box in boxes)
    return sum(map(Fraction, leaks), Fraction(0)) <= left


@lru_cache(maxsize=256)  # whoever asks whether a charge would be taken makes it next
def boxes_for(budget: Budget, before: Cost, total: Cost) -> tuple[Box, ...]:
    """The boxes that a charge fixes; none if it does not fit.

    The main box holds as many charges like this one as the budget does, if the shares of the others are large enough
    then; and this one in any case: the shares shrink until it does.
    """

    def fits(times: Fraction) -> bool:
        return legal(budget, (Box(_scaled(before, total, times)),), before)

    once = Fraction(1)
    if not fits(once):
        return ()
    whole = _largest(fits, once, _most(total, MOST_EQUAL))
    start = 4 if whole == 1 else 1  # where no second one fits, other kinds are more likely to follow
    if not _Shares(budget, before, total, Fraction(start, 2 ** (_MAX_HALVINGS - 1))).leave(once):
        return (Box(total),)
    for least, halvings in ((whole, _HALVINGS), (once, _MAX_HALVINGS)):
        for halving in range(halvings):
            boxes = _family(_Shares(budget, before, total, Fraction(start, 2**halving)), least)
            if boxes and boxes[0].covers(total) and legal(budget, boxes, before):
                return boxes
    return (Box(total),)


@dataclass(frozen=True)
class _Shares:
    """What the main box leaves to the others: this part of their shares. The smaller it is, the more the main holds."""

    budget: Budget
    before: Cost
    total: Cost
    part: Fraction

    @cached_property
    def _amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        leak, failure, variation = (share * self.part * (self.budget.delta - self.before.delta) for share in SHARES)
        variation = _short(variation / _weight(self.budget)) if self.budget.epsilon <= _MAX_EPSILON else Fraction(0)
        return leak, _written(self.before.delta + _short(failure)), variation

    @property
    def leak(self) -> Fraction:
        """What all others may leak together."""
        return self._amounts[0]

    def main(self, times: Fraction) -> Cost:
        """So many charges like the first, with the failure and the variation that all boxes share."""
        many, (_, failure, variation) = _scaled(self.before, self.total, times), self._amounts
        return replace(many, delta=max(many.delta, failure), variation=max(many.variation, variation))

    def leave(self, times: Fraction) -> bool:
        """Whether there is room for so many charges like the first."""
        limit = self.main(times)
        goal = self.budget.delta - self.leak - _common(self.budget, (Box(limit),))
        return goal > 0 and _leaks_at_most(self.budget, self.before, limit, goal)


def _family(shares: _Shares, whole: Fraction) -> tuple[Box, ...]:
    """A main box, and others with their shares; empty if the main box is too small then."""
    if not shares.leave(whole):
        return ()
    main = shares.main(_largest(shares.leave, whole, _most(shares.total, None)))
    return (Box(main), *_others(shares.budget, shares.before, shares.total, main, shares.leak))


def _most(total: Cost, most: int | None) -> int | None:
    """How often a first charge with atoms may be in a box. Many branches take too long to multiply out: once."""
    if not total.atoms:
        return most
    short = all(max(len(set(atom.add)), len(set(atom.remove))) <= _MAX_BRANCHES for atom in total.atoms)
    return max(1, MOST_ATOMS // len(total.atoms)) if short else 1


def _largest(good: Callable[[Fraction], bool], low: Fraction, most: int | None) -> Fraction:
    """Nearly the largest good multiple, from a good one on; a whole one, at most ``most``, if that is given."""
    high = 2 * low
    while (most is None or high <= most) and good(high):
        low, high = high, 2 * high
    high = high if most is None else min(high, Fraction(most + 1))
    for _ in range(_STEPS):
        middle = (low + high) / 2 if most is None else Fraction((low + high) // 2)
        if middle == low:
            break
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _scaled(before: Cost, total: Cost, times: Fraction) -> Cost:
    """The total after so many charges like the first: exactly, or cut short where it is no whole number of them.

    What is too long to be written is a little more; the first charge alone is taken as it is.
    """
    if times == 1:
        return total

    def many(start: Fraction, end: Fraction) -> Fraction:
        more = times * (end - start)
        return _written(start + (more if times.denominator == 1 else _short(more)))

    return Cost(
        mu_squared=many(before.mu_squared, total.mu_squared),
        epsilon=many(before.epsilon, total.epsilon),
        delta=many(before.delta, total.delta),
        variation=many(before.variation, total.variation),
        atoms=total.atoms * math.floor(times) if total.atoms else (),
        neighbours=total.neighbours,
    )


def _others(budget: Budget, before: Cost, total: Cost, main: Cost, leak: Fraction) -> tuple[Box, ...]:
    """The first charge and pure ones after it; and lines that touch the curve of what fits at a few places."""
    unit = Fraction(gaussian.mu(max(budget.epsilon - before.epsilon, Fraction(0)), budget.delta))
    places = [place for place in LINES if (place * unit) ** 2 >= total.mu_squared / 2]
    share = leak / (1 + len(places))
    found = [_beside(budget, before, total, main, share), *(_line(budget, p * unit, share, main) for p in places)]
    return tuple(box for box in found if box is not None and box.covers(total))


def _beside(budget: Budget, before: Cost, total: Cost, main: Cost, leak: Fraction) -> Box | None:
    """The first charge once, and as much of a pure part as leaks so little. Not looked for beside very many atoms."""
    once = replace(total, delta=main.delta, variation=main.variation)

    def good(pure: Fraction) -> bool:
        return _leaks_at_most(budget, before, replace(once, epsilon=pure), leak)

    low, high = total.epsilon, budget.epsilon
    if low >= high or len(total.atoms) > MOST_ATOMS or not good(low):
        return None
    for _ in range(_STEPS if not total.atoms else _STEPS // 3):
        middle = _short((low + high) / 2)
        low, high = (middle, high) if good(middle) else (low, middle)
    return Box(replace(once, epsilon=low))


def _line(budget: Budget, mu: Fraction, leak: Fraction, main: Cost) -> Box | None:
    """The line of the order that is best at this mu. Any order is sound: floats choose it, balls give its height."""
    if not float(mu) or not leak:
        return None
    depth = math.log(leak.denominator) - math.log(leak.numerator)
    guess = math.sqrt(2 * depth) / float(mu)
    steepest = 16 * math.sqrt(2 * max(depth - 1 - math.log1p(guess), 1)) / mu
    if not math.isfinite(steepest):
        return None
    order = 1 + Fraction(math.ceil(steepest), 16)
    height = Fraction(balls.below(lambda: balls.ball(budget.epsilon) + _log_leak(order, leak)))
    limit = Cost(epsilon=0, delta=main.delta, variation=main.variation, neighbours=main.neighbours)
    return Box(replace(limit, epsilon=_short(height)), order) if height > 0 else None


def _log_leak(order: Fraction, leak: Fraction) -> arb:
    """How far below epsilon a line of this order must stay to leak so much (line 3)."""
    return (balls.ball(leak).log() - _log_factor(order)) / balls.ball(order - 1)


def _log_factor(order: Fraction) -> arb:
    return balls.ball(order - 1) * balls.ball(1 - 1 / order).log() - balls.ball(order).log()


def _leak_of_line(budget: Budget, box: Box) -> float:
    """What a line leaks at most, rounded up (Lemma 2)."""

    def leak() -> arb:
        return balls.exp(balls.ball((box.order - 1) * (box.limit.epsilon - budget.epsilon)) + _log_factor(box.order))

    return balls.above(leak)


def _leak(budget: Budget, before: Cost, limit: Cost) -> float:
    """What a box leaks at most, rounded up. A pure part spent before the box was fixed counts in full (Theorem 3)."""
    pure, epsilon = _view(budget, before, limit)
    none = Fraction(0)
    return composition.delta(
        mu_squared=limit.mu_squared, pure=pure, failure=none, variation=none, atoms=limit.atoms, epsilon=epsilon
    )


def _leaks_at_most(budget: Budget, before: Cost, limit: Cost, goal: Fraction) -> bool:
    pure, epsilon = _view(budget, before, limit)
    return composition.at_most(
        mu_squared=limit.mu_squared,
        pure=pure,
        failure=Fraction(0),
        variation=Fraction(0),
        atoms=limit.atoms,
        epsilon=epsilon,
        delta=goal,
    )


def _view(budget: Budget, before: Cost, limit: Cost) -> tuple[Fraction, Fraction]:
    """The pure part and the epsilon at which a box leaks: as one coin, or taken off epsilon."""
    return (Fraction(0), budget.epsilon - limit.epsilon) if before.epsilon else (limit.epsilon, budget.epsilon)


def _common(budget: Budget, boxes: tuple[Box, ...]) -> Fraction:
    """The failure and variation that the boxes share: the largest of each counts once."""
    failure = max((box.limit.delta for box in boxes), default=Fraction(0))
    variation = max((box.limit.variation for box in boxes), default=Fraction(0))
    if variation and budget.epsilon > _MAX_EPSILON:
        return Fraction(2)  # more than any delta
    return failure + (_weight(budget) * variation if variation else 0)


@lru_cache(maxsize=256)
def _weight(budget: Budget) -> Fraction:
    """1 + e^epsilon, rounded up: what variation counts."""
    return balls.rational_above(lambda: 1 + balls.exp(balls.ball(budget.epsilon)))


def _atoms(total: Cost, order: Fraction) -> Fraction:
    """What the atoms add on a line: the larger direction."""
    counts = Counter(total.atoms).items()
    add = sum((times * _moment(atom.add, order) for atom, times in counts), Fraction(0))
    return max(add, sum((times * _moment(atom.remove, order) for atom, times in counts), Fraction(0)))


@lru_cache(maxsize=4096)
def _moment(branches: tuple[Branch, ...], order: Fraction) -> Fraction:
    """The Renyi divergence of an atom's branches, put together, in one direction; rounded up (Lemma 2)."""

    def moment() -> arb:
        total = arb(0)
        for b in branches:
            total += balls.ball(b.weight) * balls.exp(balls.ball((order - 1) * (order / 2 * b.mu_squared + b.shift)))
        return total.log() / balls.ball(order - 1)

    return balls.rational_above(moment)


def _written(value: Fraction) -> Fraction:
    """The number itself, or a little more if a ledger does not write down so many digits."""
    return value if costs.bits(value) <= costs.MAX_AMOUNT_BITS else math.ceil(value * _GRID) / _GRID


def _short(value: Fraction) -> Fraction:
    """The number cut down to 64 bits; to nothing if it is too small to be written so."""
    if value * _INVERSE_MINIMUM < 1:
        return Fraction(0)
    scale = Fraction(2) ** (64 - value.numerator.bit_length() + value.denominator.bit_length())
    return math.floor(value * scale) / scale


def _down(value: Fraction) -> float:
    return typed_down(value) + 0.0  # no negative zero
