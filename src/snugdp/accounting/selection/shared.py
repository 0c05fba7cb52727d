"""One private test before many runs: its cost is paid once, not once for every run.

The test releases a certificate and is Gaussian DP; then the best of runs that may depend on it is kept. The selection
is a convex profile through proved points, and its composition with the test is a sum of Gaussian sticks. Statements and
proofs: selection.proof.md, Theorem 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb

from snugdp.accounting.gaussian import cdf, nonnegative, probability
from snugdp.accounting.selection.calibrate import at, smallest_epsilon
from snugdp.accounting.selection.laws import Floats, Law, check_law
from snugdp.accounting.selection.theorems import CellSum, Certificate
from snugdp.accounting.selection.tradeoff import (
    Base,
    Chords,
    Parts,
    Sticks,
    TradeoffCurve,
    TradeoffLines,
    as_base,
    hull,
    up,
)
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real

NODES = 120
POINTS = 500
_BITS = 96
_MAX_EPSILON = 600.0


class Shared:
    """A Gaussian test, then a selection with this profile: a bound on delta for one order of the neighbours."""

    def __init__(self, selected: TradeoffCurve, test: Fraction, failure: Fraction) -> None:
        self.lines, self.test, self.failure = TradeoffLines(selected), test, failure

    def guess(self, epsilon: float) -> float:
        """The bound in floats: nothing is promised."""
        with balls.precision(balls.FIRST):
            return float(self.balls(Fraction(epsilon)).mid())

    def balls(self, epsilon: Fraction) -> arb:
        """Failure + h(last) + the sum of w alpha H(test; exp(epsilon)/alpha) over the corners of h, as a ball."""
        chords = Chords(self.lines)
        alpha, h = [arb(0), *chords.alpha], [arb(1), *chords.d]
        slopes = [(e - d) / (b - a) for (a, d), (b, e) in pairwise(zip(alpha, h, strict=True))]
        total, mu, top = h[-1] + balls.ball(self.failure), balls.ball(self.test), balls.ball(epsilon)
        for corner, (before, after) in zip(chords.alpha, pairwise([*slopes, arb(0)]), strict=True):
            weight = (after - before).max(arb(0))
            total += weight * corner * _stick(mu, top - corner.log())
        return total


def shared_delta(
    base: Base | Parts, law: Law, epsilon: Real, *, test: Real, failure: Real = 0, nodes: int = NODES
) -> float:
    """The delta at ``epsilon`` >= 0 of one ``test``-Gaussian DP test and a selection after it; rounded up.

    ``failure`` bounds the probability that the test lets through what ``base`` does not cover.
    """
    level, size, lost = nonnegative(epsilon, "epsilon"), nonnegative(test, "test"), probability(failure, "failure")
    run = as_base(base)
    alone = max(CellSum(curve, law, POINTS).guess(float(level)) for curve in run.curves)  # the test only adds to it
    selected = selection_profile(run, law, max(alone / 1000, 1e-300), nodes)
    return max(at(Shared(curve, size, lost), level) for curve in selected)


def shared_epsilon(
    base: Base | Parts, law: Law, delta: Real, *, test: Real, failure: Real = 0, nodes: int = NODES
) -> float:
    """The smallest epsilon found, at ``delta``, of one ``test``-Gaussian DP test and a selection after it; rounded up.

    Guarantee: Theorem 6 of selection.proof.md, both orders.

    >>> from snugdp.accounting.selection.tradeoff import gaussian
    >>> from snugdp.accounting.selection.laws import geometric
    >>> 2.509 < shared_epsilon(gaussian("0.3"), geometric(30), "1e-6", test="0.2") < 2.52
    True
    """
    goal, size, lost = probability(delta, "delta"), nonnegative(test, "test"), probability(failure, "failure")
    selected = selection_profile(as_base(base), law, float(goal) / 1000, nodes)
    return max(smallest_epsilon(Shared(curve, size, lost), goal) for curve in selected)


def selection_profile(base: Base, law: Law, tail: float = 1e-12, nodes: int = NODES) -> list[TradeoffCurve]:
    """What a selection leaks, as curves like those of a run: it may be composed or selected from again.

    Guarantee: every stick is proved by C2.
    """
    check_law(law)
    found: dict[tuple[int, int], Sticks] = {}

    def sticks(curve: TradeoffCurve) -> Sticks:
        name = id(curve.ahead), id(curve.back)
        if name not in found:
            found[name] = _sticks(CellSum(curve, law, POINTS), tail, nodes)
        return found[name]

    return [TradeoffCurve(sticks(curve), sticks(curve.swapped)) for curve in base.curves]


def _sticks(bound: CellSum, tail: float, nodes: int) -> Sticks:
    floor = bound.guess(_MAX_EPSILON)
    _, high = roots.bisect(lambda epsilon: bound.guess(epsilon) > max(tail, 1.01 * floor), 0.0, _MAX_EPSILON, 60)
    epsilons: Sequence[float] = np.linspace(0.0, high, nodes).tolist()
    with balls.precision(_BITS):
        certificate = Certificate(bound)
        bounds = [up(certificate.c2(Fraction(epsilon))) for epsilon in epsilons]
        factors: list[float] = [balls.upper(balls.exp(arb(epsilon))) for epsilon in epsilons]
    return hull(_array(factors), _array(bounds))


def _array(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _stick(mu: arb, log: arb) -> arb:
    """H of a Gaussian pair at the factor exp(log)."""
    if mu == 0:
        return (1 - balls.exp(log)).max(arb(0))
    start = mu / 2 - log / mu
    return (cdf(start) - balls.exp(log) * cdf(start - mu)).max(arb(0))
