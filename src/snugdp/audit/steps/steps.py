"""What every step of a plan pays for, against what its own draws give away: slack of one step hides no other.

A plan says what each of its steps costs, in order. Draws come in the same order, but which belong to which step is not
written down. So the kindest reading counts: only what no division of the draws among the steps allows is too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

from snugdp.accounting.composition import Atom
from snugdp.audit.density.parts import part, tilt
from snugdp.audit.finding import at_most
from snugdp.audit.replay import Path
from snugdp.core.guarantee import Cost
from snugdp.noise.recording import Site
from snugdp.numerics.printed import root_up

NOISY = ("add", "add_integers", "at_least", "argmax", "argmaxes", "reach", "posterior", "minimiser", "chance")
_MANY = 500
_ANY = Fraction(10**30)  # more than any draw gives away
_ROUND = Fraction(1, 10**9)  # relative: conversions are floats


@dataclass(frozen=True)
class Draw:
    """What one draw gives away."""

    mu_squared: Fraction
    epsilon: Fraction | float
    gumbel: Fraction = Fraction(0)  # the same as a Gaussian part, where its pure part can be one


@dataclass(frozen=True)
class Limit:
    """What a step pays for; ``open``: its parts do not bound its draws one by one. ``needs``: how many draws."""

    mu_squared: Fraction
    epsilon: Fraction
    open: bool = False
    needs: int = 0

    def allows(self, draws: Sequence[Draw]) -> bool:
        """Whether it pays for these."""
        if self.open:
            return True
        pure = [draw for draw in draws if draw.epsilon and not (draw.gumbel and not self.epsilon)]
        square = sum((draw.mu_squared + (0 if draw in pure else draw.gumbel) for draw in draws), Fraction(0))
        epsilon = sum((draw.epsilon for draw in pure), Fraction(0))
        return square <= self.mu_squared * (1 + _ROUND) and epsilon <= self.epsilon


@dataclass(frozen=True)
class Bill:
    """One plan of a run and the draws that it paid for.

    ``tested``: the last step comes after a certificate that may fail. ``ended``: later steps may have no draws.
    """

    limits: tuple[Limit, ...]
    draws: tuple[Draw, ...]
    tested: bool = False
    ended: bool = False

    def __str__(self) -> str:
        paid = ", ".join(_told(limit.mu_squared, limit.epsilon) for limit in self.limits)
        drawn = ", ".join(_told(draw.mu_squared, draw.epsilon) for draw in self.draws[:8])
        return f"paid {paid}; drawn {drawn}"

    @property
    def fits(self) -> bool:
        """Whether some division of the draws is paid for."""
        return _divides(self.limits, self.draws, self.ended)

    @property
    def surely_not(self) -> bool:
        """Whether none is, even if a certificate failed and the last step gives away whatever it likes."""
        if not self.tested:
            return not self.fits
        last = Limit(Fraction(0), Fraction(0), True, self.limits[-1].needs)
        return not _divides((*self.limits[:-1], last), self.draws, self.ended)


def bills(run: Path, *, parts: bool) -> list[Bill]:
    """Of every plan that was paid in a run. ``parts``: whether the parts of a cost with a delta bound its draws."""
    ends = [*(start for start, _ in run.here.plans[1:]), len(run.pairs)] if run.here.plans else []
    found = []
    for (start, costs), end in zip(run.here.plans, ends, strict=True):
        draws = tuple(_draw(*pair) for pair in run.pairs[start:end] if pair[0].method in NOISY)
        limits = _limits(costs, parts)
        if len(draws) < sum(limit.needs for limit in limits):  # steps may be left out, and some draw nothing
            limits = tuple(replace(limit, needs=0) for limit in limits)
        tested = any(cost.delta or cost.variation for cost in costs)
        found.append(Bill(limits, draws, tested, run.refused or bool(run.reason)))
    return found


def failure(run: Path) -> Fraction:
    """The most that a step of a plan may fail."""
    return max((cost.delta + cost.variation for _, costs in run.here.plans for cost in costs), default=Fraction(0))


def _limits(costs: Sequence[Cost], parts: bool) -> tuple[Limit, ...]:
    """A last step of epsilon and delta together is open, and so is the whole that pays for a last one that is free.

    Before the last, its Gaussian draws are: they are paid by epsilon and delta together. One step alone whose cost is
    no sum of parts is open too, unless it is that of a perturbed objective.
    """
    squares = [cost.mu_squared + sum((_largest(atom) for atom in cost.atoms), Fraction(0)) for cost in costs]
    free = [not (square or cost.epsilon) for square, cost in zip(squares, costs, strict=True)]
    joint = [bool(cost.epsilon and cost.delta) and not parts for cost in costs]
    alone = len(costs) == 1 and not parts and not costs[0].atoms
    found = []
    for place, (square, cost) in enumerate(zip(squares, costs, strict=True)):
        last = place == len(costs) - 1
        unbound = alone or (joint[place] and (last or free[-1])) or (free[place] and any(joint))
        most = square if square or not joint[place] else _ANY
        found.append(Limit(most, cost.epsilon, unbound, int(not free[place])))
    return tuple(found)


def divisions(bill: Bill) -> frozenset[tuple[int, ...]]:
    """All ways to divide the draws among the steps, as the step of every draw; none where there are too many."""
    steps, count = len(bill.limits), len(bill.draws)
    if math.comb(count + steps - 1, max(steps - 1, 0)) > _MANY:
        return frozenset()
    found = []
    for chosen in combinations_with_replacement(range(steps), count):
        parts = [
            [draw for draw, step in zip(bill.draws, chosen, strict=True) if step == place] for place in range(steps)
        ]
        enough = all(len(part) >= limit.needs for part, limit in zip(parts, bill.limits, strict=True))
        if enough and all(limit.allows(part) for part, limit in zip(parts, bill.limits, strict=True)):
            found.append(chosen)
    return frozenset(found)


def grown(draw: Draw, times: Fraction) -> Draw:
    """The draw with its noise so many times smaller."""
    pure = draw.epsilon * times
    return Draw(draw.mu_squared * times**2, pure, _as_gaussian(pure) if draw.gumbel else Fraction(0))


def _largest(atom: Atom) -> Fraction:
    return max(branch.mu_squared for branch in (*atom.add, *atom.remove))


def _draw(here: Site, there: Site) -> Draw:
    found = part(here, there)
    if found.method == "minimiser":
        return Draw(tilt(here, there), Fraction(0))
    alike = _as_gaussian(found.epsilon) if found.gumbel else Fraction(0)
    return Draw(found.mu_squared, found.epsilon, alike)


def _as_gaussian(loss_range: Fraction | float) -> Fraction:
    """The square of the mu that dominates an exponential mechanism: ``mechanisms/support/peeling.proof.md``."""
    from scipy.special import expit, ndtri

    return (
        Fraction(float(2 * ndtri(expit(float(loss_range) / 2)))) ** 2 if math.isfinite(loss_range) else Fraction(10**9)
    )


def _divides(limits: Sequence[Limit], draws: Sequence[Draw], ended: bool) -> bool:
    """Whether the draws can be divided among the steps, in order, so that each pays for its own."""
    reached = {0}
    for limit in limits:
        if ended and len(draws) in reached:
            return True
        after = set() if limit.needs else set(reached)
        for start in reached:
            for end in range(start + 1, len(draws) + 1):
                if not limit.allows(draws[start:end]):
                    break
                after.add(end)
        reached = after
    return len(draws) in reached


def _told(mu_squared: Fraction, epsilon: Fraction | float) -> str:
    return f"mu {at_most(root_up(mu_squared))} epsilon {at_most(epsilon)}"
