"""What selection costs, and what a run may cost within a budget, by any of the accountings.

Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Protocol

from flint import arb

from snugdp.accounting import composition
from snugdp.accounting import gaussian as gauss
from snugdp.accounting.gaussian import nonnegative, probability
from snugdp.accounting.selection.comparison_bounds import Closed, Corollary, QuotedBound, Renyi
from snugdp.accounting.selection.laws import NAMES, Law, best_tried, check_law, expected_quantile, mean
from snugdp.accounting.selection.theorems import CellSum, First
from snugdp.accounting.selection.tradeoff import (
    Base,
    Family,
    Parts,
    TradeoffCurve,
    as_base,
    float_gaussian,
    float_of_cost,
    gaussian,
)
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, rational, readings, typed_down

METHODS = ("C2", "C1", "closed", "corollary", "liu_talwar", "renyi")
_SLACKS = (1e-9, 1e-7, 1e-5, 1e-3, 0.03)
_STEPS, _HALVINGS = 100, 40
_TINY_DELTA = 1e-300
_MIN_SCALE = 1e-12
_MAX_EPSILON = 1000.0  # nothing is looked for beyond


def delta(base: Base | Parts, law: Law, epsilon: Real, method: str = "C2") -> float:
    """The delta of selection at any real epsilon; rounded up, at most 1.

    Guarantee: the winner of K runs, K of this law and hidden, is (epsilon, delta)-DP if every run is dominated by
    ``base`` (selection.proof.md, Theorem 3; for "renyi" the theorem is quoted, not proved).

    >>> from snugdp.accounting.selection.laws import geometric
    >>> 9.8e-7 < delta(gaussian("0.1414"), geometric(30), 1) < 9.9e-7
    True
    """
    level, run = rational(epsilon, "epsilon"), as_base(base)
    if level < 0:
        run = Base(tuple(curve.swapped for curve in run.curves), run.mu, run.failure)
        other = max(at(bound, -level) for bound in bounds(run, law, method))
        return min(1.0, balls.above(lambda: 1 - balls.exp(balls.ball(level)) * (1 - balls.ball(Fraction(other)))))
    return max(at(bound, level) for bound in bounds(run, law, method))


def epsilon(base: Base | Parts, law: Law, delta: Real, method: str = "C2") -> float:
    """The smallest epsilon >= 0 found at which selection is proved to be (epsilon, delta)-DP; infinite if none is.

    >>> from snugdp.accounting.selection.laws import geometric
    >>> round(epsilon(gaussian("0.1414"), geometric(30), "1e-6"), 3)
    0.999
    """
    goal = probability(delta, "delta")
    return max(smallest_epsilon(bound, goal) for bound in bounds(as_base(base), law, method))


def mu(law: Law, epsilon: Real, delta: Real, *, failure: Real = 0, method: str = "C2") -> float:
    """The largest Gaussian run that a total budget affords, rounded down; 0 if none is found.

    Guarantee: the winner of K runs, each mu-Gaussian DP except for ``failure``, is (epsilon, delta)-DP with the float
    returned, read in binary or as it prints (selection.proof.md, Theorem 3).

    >>> from snugdp.accounting.selection.laws import geometric
    >>> mu(geometric(30), 1, "1e-6") >= 0.1414
    True
    """
    level, goal = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    lost = probability(failure, "failure")
    high = gauss.mu(level, goal)
    quick = partial(float_gaussian, failure=float(lost))
    return _largest_scale(
        quick, partial(gaussian, failure=lost), partial(bounds, law=law, method=method), (level, goal), high
    )


def largest(
    family: Family | Callable[[Fraction], Parts],
    law: Law,
    epsilon: Real,
    delta: Real,
    *,
    most: float = 100.0,
    method: str = "C2",
) -> float:
    """The largest scale of a family of runs that a total budget affords, at most ``most``; rounded down.

    ``family(scale)`` must leak more the larger the scale.

    >>> from snugdp import Cost
    >>> from snugdp.accounting.selection.laws import geometric
    >>> 1 < largest(lambda scale: Cost(epsilon=scale), geometric(30), 3, 0) < 1.1
    True
    """
    level, goal = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    return _largest_scale(
        lambda scale: _quick(family(Fraction(scale))),
        lambda scale: as_base(family(scale)),
        partial(bounds, law=law, method=method),
        (level, goal),
        most,
        close=1e-6,
    )


def _quick(run: Base | Parts) -> Base:
    return run if isinstance(run, Base) else float_of_cost(run)


def bounds(base: Base, law: Law, method: str = "C2") -> list[Bound]:
    """The bound of one accounting for every order of the neighbours."""
    check_law(law)
    if method == "renyi":
        return [Renyi(base, law)]
    kinds: dict[str, Callable[[TradeoffCurve, Law], Bound]] = {
        "C2": CellSum,
        "C1": First,
        "closed": Closed,
        "corollary": Corollary,
        "liu_talwar": QuotedBound,
    }
    if method not in kinds:
        raise ValueError(f"method must be one of {', '.join(METHODS)}")
    return [kinds[method](curve, law) for curve in base.curves]


# --- inverse problems: floats find the crossing, balls prove a point on its safe side ---
# What floats do is of no consequence for what is promised: only a point at which the bound has been proved is returned.


class Bound(Protocol):
    """A bound on delta as a function of epsilon >= 0, in floats and in balls."""

    def guess(self, epsilon: float) -> float: ...  # noqa: D102

    def balls(self, epsilon: Fraction) -> arb: ...  # noqa: D102


def at(bound: Bound, epsilon: Fraction) -> float:
    """The bound at one epsilon, rounded up, at most 1."""
    return min(1.0, balls.above(lambda: bound.balls(epsilon)))


def holds(bound: Bound, epsilon: Fraction, goal: Fraction) -> bool:
    """Whether the bound is proved to be at most ``goal``."""
    return balls.at_most(lambda: bound.balls(epsilon), goal, most=2 * balls.FIRST)


def smallest_epsilon(bound: Bound, goal: Fraction) -> float:
    """About the smallest epsilon >= 0 at which the bound is proved to be at most ``goal``; infinite if none is."""
    aim, low, high = float(goal), 0.0, 1.0
    if bound.guess(0.0) <= aim and holds(bound, Fraction(0), goal):
        return 0.0
    while bound.guess(high) > aim:
        low, high = high, 2 * high
        if high > _MAX_EPSILON:
            return math.inf
    high = roots.bisect(lambda epsilon: bound.guess(epsilon) > aim, low, high, 60)[1]
    for slack in _SLACKS:
        found = high * (1 + slack)
        if holds(bound, min(readings(found)), goal):
            return found
    return math.inf


def _largest_scale(
    quick: Callable[[float], Base],
    certain: Callable[[Fraction], Base],
    bounds: Callable[[Base], list[Bound]],
    budget: tuple[Fraction, Fraction],
    high: float,
    *,
    close: float = 1e-10,
) -> float:
    """About the largest scale up to ``high`` at which the bounds are proved to fit the budget; 0 if none is found."""
    level, goal = budget

    def gap(scale: float) -> float:
        found = max(bound.guess(float(level)) for bound in bounds(quick(scale)))
        return math.log(max(found, _TINY_DELTA)) - math.log(max(float(goal), _TINY_DELTA))

    low = _crossing(gap, high, close)
    for slack in _SLACKS if low else ():
        found = low * (1 - slack)
        if all(holds(bound, level, goal) for bound in bounds(certain(max(readings(found))))):
            return found
    return 0.0


def _crossing(gap: Callable[[float], float], high: float, close: float) -> float:
    """The largest scale up to ``high`` at which the gap is not positive, nearly; 0 if there is none."""
    if high <= 0 or (above := gap(high)) <= 0:
        return high
    low = high
    while (below := gap(low)) > 0:
        low, high, above = low / 4, low, below
        if low < _MIN_SCALE:
            return 0.0
    for step in range(_STEPS):
        if high - low <= close * high:
            break
        part = 0.5 if step % 3 == 2 else below / (below - above)
        scale = low * (high / low) ** min(max(part, 1e-4), 1 - 1e-4)
        here = gap(scale)
        if here <= 0:
            low, below, above = scale, here, above / 2  # the end that stays counts for less: the Illinois rule
        else:
            high, above, below = scale, here, below / 2
    return low


# --- which way to the best candidate is cheapest: hidden runs, or all candidates composed (section "Routes") ---


@dataclass(frozen=True)
class Route:
    """One way to a winner: what each run may spend, and how good the winner is to be expected.

    ``scale`` is the Gaussian mu of a run, or the scale of the family that was asked about; rounded down.
    ``quantile`` is the expected quantile of the winner among all runs, ``best_tried`` the probability that the best
    candidate is tried at all, ``runs`` how many runs there are on average.
    """

    name: str
    scale: float
    runs: float
    quantile: float
    best_tried: float
    law: Law | None = None


def routes(
    epsilon: Real,
    delta: Real,
    candidates: int,
    *,
    mean_runs: Real | None = None,
    laws: tuple[str | Law, ...] = ("geometric", "logarithmic", "poisson"),
    failure: Real = 0,
    family: Callable[[Fraction], Parts] | None = None,
    most: float = 100.0,
) -> tuple[Route, ...]:
    """Every route, with what it leaves to a run out of a total budget: selection by each law, and composition.

    ``mean_runs`` is the number of candidates if not given. ``family(scale)`` gives the cost of a run, which grows with
    the scale; without it a run is Gaussian with a failure mass of ``failure``. Composing all candidates releases
    all of them, so it needs scores that are public; then the best is found for certain.

    >>> [(route.name, round(route.scale, 3)) for route in routes(1, "1e-6", 3, laws=("geometric",))]
    [('geometric', 0.193), ('compose', 0.137)]
    """
    if candidates < 1:
        raise ValueError("there must be at least one candidate")
    level, goal = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
    lost = probability(failure, "failure")
    runs = max(candidates, 2) if mean_runs is None else mean_runs
    found = []
    for item in laws:
        law = NAMES[item](runs) if isinstance(item, str) else item
        scale = mu(law, level, goal, failure=lost) if family is None else largest(family, law, level, goal, most=most)
        quantile, tried = expected_quantile(law), best_tried(law, candidates)
        found.append(Route(law.name, scale, mean(law), quantile, tried, law))
    if family is None:
        together = _composed_gaussian(level, goal - candidates * lost, candidates)
    else:
        together = _composed(family, (level, goal), candidates, most)
    return *found, Route("compose", together, float(candidates), candidates / (candidates + 1), 1.0)


def _composed_gaussian(epsilon: Fraction, delta: Fraction, candidates: int) -> float:
    """The largest mu at which so many Gaussian runs together fit."""
    if delta <= 0:
        return 0.0
    root = balls.above(lambda: arb(candidates).sqrt())
    return typed_down(Fraction(gauss.mu(epsilon, delta)) / Fraction(root))


def _composed(
    family: Callable[[Fraction], Parts], budget: tuple[Fraction, Fraction], candidates: int, most: float
) -> float:
    """The largest scale at which all candidates together fit."""

    def fits(scale: float) -> bool:
        return _fit(family(max(readings(scale))), candidates, budget)

    return most if fits(most) else roots.bisect(fits, 0.0, most, _HALVINGS)[0]


def _fit(cost: Parts, candidates: int, budget: tuple[Fraction, Fraction]) -> bool:
    return composition.at_most(
        mu_squared=candidates * cost.mu_squared,
        pure=candidates * cost.epsilon,
        failure=candidates * cost.delta,
        variation=candidates * cost.variation,
        atoms=candidates * cost.atoms,
        epsilon=budget[0],
        delta=budget[1],
    )
