"""What every step of a plan pays for, against what its own draws give away: slack of one step hides no other.

A plan says what each of its steps costs, and every draw is made in one of them (``Noise.at``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from snugdp.accounting.composition import Atom
from snugdp.audit.density.parts import part, tilt
from snugdp.audit.finding import at_most
from snugdp.audit.replay import Path
from snugdp.core.guarantee import Cost
from snugdp.noise.recording import Site
from snugdp.numerics.printed import root_up

NOISY = ("add", "add_integers", "at_least", "argmax", "argmaxes", "reach", "posterior", "minimiser", "chance")
_ANY = Fraction(10**30)  # more than any draw gives away
_ROUND = Fraction(1, 10**9)  # relative: conversions are floats


@dataclass(frozen=True)
class Draw:
    """What one draw gives away, in its step."""

    step: str
    mu_squared: Fraction
    epsilon: Fraction | float
    gumbel: Fraction = Fraction(0)  # the same as a Gaussian part, where its pure part can be one


@dataclass(frozen=True)
class Limit:
    """What a step pays for; ``open``: its parts do not bound its draws one by one."""

    mu_squared: Fraction
    epsilon: Fraction
    open: bool = False

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
    """One plan of a run and the draws that it paid for, by step.

    ``tested``: the last step comes after a certificate that may fail.
    """

    limits: Mapping[str, Limit]
    draws: tuple[Draw, ...]
    tested: bool = False

    def __str__(self) -> str:
        step = self.unpaid()[0]
        limit, drawn = self.limits[step], [draw for draw in self.draws if draw.step == step][:8]
        parts = ", ".join(_told(draw.mu_squared, draw.epsilon) for draw in drawn)
        return f"step {step}: paid {_told(limit.mu_squared, limit.epsilon)}; drawn {parts}"

    def unpaid(self, *, lucky: bool = True) -> list[str]:
        """The steps whose draws give away more than they pay for.

        Without ``lucky`` a certificate may have failed, and then the last step gives away whatever it likes.
        """
        steps = list(self.limits)
        kept = steps if lucky or not self.tested else steps[:-1]
        return [
            step for step in kept if not self.limits[step].allows([draw for draw in self.draws if draw.step == step])
        ]


def bills(run: Path, *, parts: bool) -> list[Bill]:
    """Of every plan that was paid in a run. ``parts``: whether the parts of a cost with a delta bound its draws."""
    ends = [*(plan.start for plan in run.here.plans[1:]), len(run.pairs)] if run.here.plans else []
    found = []
    for plan, end in zip(run.here.plans, ends, strict=True):
        draws = tuple(_draw(*pair) for pair in run.pairs[plan.start : end] if pair[0].method in NOISY)
        tested = any(cost.delta or cost.variation for cost in plan.costs.values())
        limits = dict(zip(plan.costs, _limits(tuple(plan.costs.values()), parts), strict=True))
        found.append(Bill(limits, draws, tested))
    return found


def failure(run: Path) -> Fraction:
    """The most that a step of a plan may fail."""
    return max(
        (cost.delta + cost.variation for plan in run.here.plans for cost in plan.costs.values()), default=Fraction(0)
    )


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
        found.append(Limit(most, cost.epsilon, unbound))
    return tuple(found)


def grown(draw: Draw, times: Fraction) -> Draw:
    """The draw with its noise so many times smaller."""
    pure = draw.epsilon * times
    alike = _as_gaussian(pure) if draw.gumbel else Fraction(0)
    return Draw(draw.step, draw.mu_squared * times**2, pure, alike)


def _largest(atom: Atom) -> Fraction:
    return max(branch.mu_squared for branch in (*atom.add, *atom.remove))


def _draw(here: Site, there: Site) -> Draw:
    found = part(here, there)
    if found.method == "minimiser":
        return Draw(here.step, tilt(here, there), Fraction(0))
    alike = _as_gaussian(found.epsilon) if found.gumbel else Fraction(0)
    return Draw(here.step, found.mu_squared, found.epsilon, alike)


def _as_gaussian(loss_range: Fraction | float) -> Fraction:
    """The square of the mu that dominates an exponential mechanism: ``mechanisms/support/peeling.proof.md``."""
    from scipy.special import expit, ndtri

    return (
        Fraction(float(2 * ndtri(expit(float(loss_range) / 2)))) ** 2 if math.isfinite(loss_range) else Fraction(10**9)
    )


def _told(mu_squared: Fraction, epsilon: Fraction | float) -> str:
    return f"mu {at_most(root_up(mu_squared))} epsilon {at_most(epsilon)}"
