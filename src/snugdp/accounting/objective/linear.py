"""Objective perturbation: how much noise a budget asks for, and how little regularisation it allows.

A sum of losses plus ``ridge/2 |theta - centre|^2`` plus ``b . theta``, b Gaussian, is minimised. What matters is
m = B tau / sigma (the largest gradient of a row over the noise) and kappa = B^2 / ridge. Losses are of *class T*
(log-cosh, pseudo-Huber) or *general* (Huber as well). Statements and proofs: linear.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from snugdp.accounting import gaussian
from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.accounting.objective.run import RunCost, log_det, within
from snugdp.numerics import roots
from snugdp.numerics.rationals import Real, float_down, readings

_HALVINGS = 60


def calibrate(epsilon: Real, delta: Real, *, mu: Real = 0, runs: int = 1) -> float:
    """The largest m of each of ``runs`` equal runs of class T, beside a Gaussian part ``mu``; rounded down.

    Guarantee: with kappa at most ``largest_kappa`` of the same company, all of it together is (epsilon, delta)-DP, with
    the float read in binary or as it prints (linear.proof.md, Theorem 2). Zero when nothing is left for the runs.

    >>> round(calibrate(1, "1e-6"), 9), round(calibrate(1, "1e-6", mu="0.1", runs=2), 9)
    (0.229086943, 0.140237793)
    """
    level, goal = positive(epsilon, "epsilon"), probability(delta, "delta") / 2 ** _count(runs)
    rest = nonnegative(mu, "mu") ** 2
    room = Fraction(gaussian.mu(level, goal)) ** 2 - rest
    if room <= 0:
        return 0.0
    low = math.sqrt(float_down(room / runs)) * (1 - 2.0**-40)
    return roots.largest(lambda m: gaussian.delta_ball(rest + runs * m**2, level), goal, low)


def largest_kappa(
    epsilon: Fraction, delta: Fraction, m_squared: Sequence[Fraction], weights: Sequence[Fraction], mu_squared: Fraction
) -> Fraction:
    """The largest k such that runs of class T with these m^2 and kappa = k * weight still fit; 0 where nothing fits.

    Beside them stands a Gaussian part. Rounded down.

    Guarantee: with kappa up to k * weight, all of it together is (epsilon, delta)-DP (linear.proof.md, Theorem 2).

    >>> one, budget = Fraction(1), (Fraction(1), Fraction(1, 10**6))
    >>> round(float(largest_kappa(*budget, [Fraction(1, 25)], [one], Fraction(9, 10**4))), 9)
    0.455125389
    """

    def fits(k: Fraction) -> bool:
        runs = [RunCost(square, k * part, "class_t") for square, part in zip(m_squared, weights, strict=True)]
        return within(epsilon, delta, runs, mu_squared)

    if len(m_squared) == 1 and not mu_squared:
        alone = min(epsilon, epsilon / 2 + m_squared[0] / 4) / weights[0]
        return alone if fits(alone) else Fraction(0)
    return _largest(fits, epsilon / max(weights))


def calibrate_general(
    epsilon: Real, delta: Real, kappa: Sequence[Real], *, shares: Sequence[Real] = (1,), mu_share: Real = 0
) -> float:
    """The largest M such that runs of any admissible loss, m^2 = share * M^2, and a Gaussian mu^2 = mu_share * M^2 fit.

    Guarantee: all of it together is (epsilon, delta)-DP (linear.proof.md, Theorem 2). Zero where log(1 + kappa),
    summed over the runs, is not below epsilon: then no amount of noise is enough.

    >>> round(calibrate_general(1, "1e-6", ["1/20"]), 9)
    0.225966667
    """
    level, goal = positive(epsilon, "epsilon"), probability(delta, "delta")
    sizes = [nonnegative(value, "kappa") for value in kappa]
    parts, rest = [positive(share, "share") for share in shares], nonnegative(mu_share, "mu_share")

    def fits(total: Fraction) -> bool:
        runs = [RunCost(part * total**2, size, "sign_changing") for part, size in zip(parts, sizes, strict=True)]
        return within(level, goal, runs, rest * total**2)

    if not goal or sum(map(log_det, sizes)) >= level:
        return 0.0
    high = Fraction(gaussian.mu(level, goal)) / Fraction(math.isqrt(math.floor((sum(parts) + rest) * 4**30)), 2**30)
    found = float_down(_largest(fits, high))
    while found > 0 and not all(fits(value) for value in readings(found)):
        found = math.nextafter(found, 0)
    return found


def _largest(good: Callable[[Fraction], bool], high: Fraction) -> Fraction:
    """A float near the largest good number up to ``high``: halving, and only what was proved good is returned."""
    return high if good(high) else roots.bisect(good, Fraction(0), high, _HALVINGS, middle=roots.float_mean)[0]


def _count(runs: int) -> int:
    if not isinstance(runs, int) or not 1 <= runs <= 64:
        raise ValueError("runs must be a whole number from 1 to 64")
    return runs
