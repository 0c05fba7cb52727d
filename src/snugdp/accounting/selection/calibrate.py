"""What selection costs, and what a run may cost within a budget, by any of the accountings.

Statements and proofs: selection.proof.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from snugdp.accounting import gaussian as gauss
from snugdp.accounting.gaussian import nonnegative, probability
from snugdp.accounting.selection.comparison_bounds import Closed, Corollary, QuotedBound, Renyi
from snugdp.accounting.selection.laws import check_law
from snugdp.accounting.selection.run_counts import Law
from snugdp.accounting.selection.search import Bound, at, smallest
from snugdp.accounting.selection.search import largest as search_largest
from snugdp.accounting.selection.theorems import First, Sum
from snugdp.accounting.selection.tradeoff import Base, Family, TradeoffCurve, float_gaussian, gaussian
from snugdp.accounting.selection.tradeoff_curves import Parts, as_base
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

METHODS = ("C2", "C1", "closed", "corollary", "liu_talwar", "renyi")


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
    return max(smallest(bound, goal) for bound in bounds(as_base(base), law, method))


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
    return search_largest(
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
    return search_largest(
        lambda scale: as_base(family(Fraction(scale))),
        lambda scale: as_base(family(scale)),
        partial(bounds, law=law, method=method),
        (level, goal),
        most,
        close=1e-6,
    )


def bounds(base: Base, law: Law, method: str = "C2") -> list[Bound]:
    """The bound of one accounting for every order of the neighbours."""
    check_law(law)
    if method == "renyi":
        return [Renyi(base, law)]
    kinds: dict[str, Callable[[TradeoffCurve, Law], Bound]] = {
        "C2": Sum,
        "C1": First,
        "closed": Closed,
        "corollary": Corollary,
        "liu_talwar": QuotedBound,
    }
    if method not in kinds:
        raise ValueError(f"method must be one of {', '.join(METHODS)}")
    return [kinds[method](curve, law) for curve in base.curves]
