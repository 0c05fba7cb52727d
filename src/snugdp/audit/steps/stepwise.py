"""Layer N, step by step: what the draws of each step of a plan give away, against what that step pays for.

The sum of a plan has slack: a test that could be dearer, a release far below its bound. One step that is wrong by a
factor hides there. Here every step stands for itself: a plan says what each of its steps costs, and every draw is made
in one of them (``Noise.at``). A certificate may fail, so what is released after it is looked at with the luckiest noise
for which it does not: a bound that is barely true, a test that is barely passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TypeVar

from snugdp.accounting.composition import Atom
from snugdp.audit.density.final_draw import elected, shown
from snugdp.audit.density.parts import part, tilt
from snugdp.audit.finding import Case, Finding, at_most
from snugdp.audit.replay import Path, path, random_pairs
from snugdp.core.guarantee import Cost
from snugdp.noise.boundary import BoundaryNoise
from snugdp.noise.recording import Site
from snugdp.numerics.printed import root_up

Data = TypeVar("Data")
_CLAIM = "every step pays for its own draws"
_SMALLER = Fraction(4, 5)  # of the noise of one draw: the power check
_MAX_TESTED_DRAWS = 12  # draws of which that is asked
_SINGLE = ("add", "at_least")
_SINGLE_DRAWS = 3  # single draws that are put at the boundary, one at a time
NOISY = (
    "add",
    "add_integers",
    "at_least",
    "argmax",
    "argmaxes",
    "reach",
    "posterior",
    "minimiser",
    "chance",
    "weighted_choice",
)
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

    def unpaid(self, *, boundary: bool = True) -> list[str]:
        """The steps whose draws give away more than they pay for.

        Without ``boundary`` a certificate may have failed, and then the last step gives away whatever it likes.
        """
        steps = list(self.limits)
        kept = steps if boundary or not self.tested else steps[:-1]
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
    """The square of the mu that dominates an exponential mechanism: ``accounting/bounded_range.proof.md``."""
    from scipy.special import expit, ndtri

    return (
        Fraction(float(2 * ndtri(expit(float(loss_range) / 2)))) ** 2 if math.isfinite(loss_range) else Fraction(10**9)
    )


def _told(mu_squared: Fraction, epsilon: Fraction | float) -> str:
    return f"mu {at_most(root_up(mu_squared))} epsilon {at_most(epsilon)}"


@dataclass
class _Seen:
    """How many plans, which draws are close to what pays for them, and what was too much."""

    plans: int = 0
    draws: dict[int, bool] = field(default_factory=dict)
    wrong: str = ""

    def add(self, run: Path, case: Case[Data], where: str, *, boundary: bool) -> None:
        """One more run."""
        if any(site.method in NOISY for site in run.here.sites[: run.here.plans[0].start if run.here.plans else 0]):
            self.wrong = self.wrong or f"{where}: something was drawn before it was paid"
        if any(cost.neighbours != case.cost.neighbours for plan in run.here.plans for cost in plan.costs.values()):
            self.wrong = self.wrong or "what is paid is for other neighbours than what is claimed"
        for bill in bills(run, parts=case.parts):
            self.plans += 1
            for place in range(min(len(bill.draws), _MAX_TESTED_DRAWS)):
                self.draws[place] = self.draws.get(place, False) or _notices(bill, place, boundary)
            if bill.unpaid(boundary=boundary):
                self.wrong = self.wrong or f"{where}: {bill}"
            if boundary and not any(limit.open for limit in bill.limits.values()):
                self.wrong = self.wrong or _at(where, shown(run))
            elif boundary and len(bill.limits) > 1:
                self.wrong = self.wrong or _at(where, elected(run))


def stepwise(case: Case[Data], *, random: int = 20, boundary: int = 4, seed: int = 0) -> list[Finding]:
    """The audit of a case: ordinary and boundary runs on its worst pairs and on ``random`` neighbours, both ways.

    ``boundary``: on how many of the random neighbours there are boundary runs too. Nothing is found where only the
    output is promised, or where nothing is said to be paid (by ``ReleaseContext.pay``).

    Guarantee: a true claim cannot fail, if each certificate is linear in the noise of its own step.
    """
    if not case.transcript:
        return []
    seen = _Seen()
    try:
        worst = [pair for one, two in case.worst() for pair in ((one, two), (two, one))]
        pairs = [*worst, *random_pairs(case, random, seed)]
        plain = [path(case, *pair, (seed << 24) + number) for number, pair in enumerate(pairs)]
        if not any(_bound(run, case) for run in plain[: len(worst)]):
            return []
        for number, (pair, run) in enumerate(zip(pairs, plain, strict=True)):
            where = f"pair {number // 2 + 1}" if number < len(worst) else "random pair"
            seen.add(run, case, where, boundary=False)
            for extreme in _at_boundary(case, *pair, run) if number < len(worst) + boundary else ():
                seen.add(extreme, case, f"{where}, at the boundary", boundary=True)
    except Exception as problem:
        return [Finding("N", case.name, _CLAIM, "an error", False, type(problem).__name__)]
    if not seen.plans:
        return []
    found = sum(seen.draws.values())
    detail = seen.wrong or f"noise 20% smaller is seen at {found} of {len(seen.draws)} draws"
    return [Finding("N", case.name, _CLAIM, f"{seen.plans} plans", not seen.wrong, detail)]


def _at(where: str, why: str) -> str:
    return f"{where}: {why}" if why else ""


def _bound(run: Path, case: Case[Data]) -> bool:
    """Whether some step says what its draws may give away."""
    return any(not limit.open for bill in bills(run, parts=case.parts) for limit in bill.limits.values())


def _at_boundary(case: Case[Data], first: Data, second: Data, plain: Path) -> Iterator[Path]:
    """With nothing that may fail all answers are possible; otherwise those for which no certificate fails."""
    most = failure(plain)
    for sizes in _choices(plain, safe=not most):
        yield path(case, first, second, 0, source=BoundaryNoise(0, most, sizes, still=bool(most)))


def _choices(plain: Path, *, safe: bool) -> Iterator[Sequence[float]]:
    """Noise on one draw, or on one draw of each step that may fail by itself."""
    single = [site.step for site in plain.here if site.method in _SINGLE]
    if safe and not single:
        return  # an ordinary run
    yield []
    for place, size in product(range(min(len(single), _SINGLE_DRAWS)), (1.0, -1.0, 0.3, -0.3) if safe else (1.0, -1.0)):
        yield [0.0] * place + [size]
    costs = plain.here.plans[0].costs if plain.here.plans else {}
    firsts = [single.index(step) for step in list(costs)[:-1] if step in single and costs[step].delta]
    if len(firsts) > 1:
        for signs in product((1.0, -1.0), repeat=len(firsts)):
            yield [dict(zip(firsts, signs, strict=True)).get(place, 0.0) for place in range(max(firsts) + 1)]


def _notices(bill: Bill, place: int, boundary: bool) -> bool:
    """Whether less noise on this draw alone would be too much."""
    more = tuple(grown(draw, 1 / _SMALLER) if k == place else draw for k, draw in enumerate(bill.draws))
    return bool(replace(bill, draws=more).unpaid(boundary=boundary))
