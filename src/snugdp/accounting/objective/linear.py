"""Objective perturbation: how much noise a budget asks for, and how little regularisation it allows.

A sum of losses plus ``ridge/2 |theta - centre|^2`` plus ``b . theta``, b Gaussian, is minimised. What matters is
m = B tau / sigma (the largest gradient of a row over the noise) and kappa = B^2 / ridge. Losses are of *class T*
(log-cosh, pseudo-Huber) or *general* (Huber as well). Statements and proofs: linear.proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import arb

from snugdp.accounting import composition, gaussian
from snugdp.accounting.gaussian import cdf, nonnegative, positive, probability
from snugdp.accounting.objective.run import RunCost, critical_loss, log_det, within
from snugdp.numerics import balls, roots
from snugdp.numerics.rationals import Real, float_down, rational, readings

PROOF = "accounting/objective/linear.proof.md#theorem-2"

_HALVINGS = 60


def calibrate(epsilon: Real, delta: Real, *, mu: Real = 0, runs: int = 1) -> float:
    """The largest m of each of ``runs`` equal runs of class T, beside a Gaussian part ``mu``; rounded down.

    Guarantee: with kappa at most ``kappa_limit`` of the same company, all of it together is (epsilon, delta)-DP, with
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


def kappa_alone(epsilon: Real, m: Real) -> Fraction:
    """The largest kappa for one run of class T on its own, exactly: min(epsilon, epsilon/2 + m^2/4).

    Guarantee: up to here delta at epsilon is at most twice that of a
    Gaussian mechanism of parameter m (linear.proof.md, Corollary 1).

    >>> kappa_alone(1, "0.2")
    Fraction(51, 100)
    """
    level = positive(epsilon, "epsilon")
    return min(level, level / 2 + nonnegative(m, "m") ** 2 / 4)


def kappa_limit(
    epsilon: Real, delta: Real, m: Sequence[Real], *, mu: Real = 0, weights: Sequence[Real] | None = None
) -> Fraction:
    """The largest k such that runs of class T with the given m and kappa = k * weight still fit; rounded down.

    Beside them stands a Gaussian part ``mu``. Weights are 1 unless given. Zero where nothing fits.

    Guarantee: with kappa up to k * weight, all of it together is (epsilon, delta)-DP (linear.proof.md, Theorem 2).

    >>> round(float(kappa_limit(1, "1e-6", ["0.2"], mu="0.03")), 9)
    0.455125389
    """
    squares = [nonnegative(value, "m") ** 2 for value in m]
    parts = [positive(weight, "weight") for weight in ([1] * len(squares) if weights is None else weights)]
    rest = nonnegative(mu, "mu") ** 2
    return largest_kappa(positive(epsilon, "epsilon"), probability(delta, "delta"), squares, parts, rest)


def largest_kappa(
    epsilon: Fraction, delta: Fraction, m_squared: Sequence[Fraction], weights: Sequence[Fraction], mu_squared: Fraction
) -> Fraction:
    """As ``kappa_limit``, from the squares."""

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


def smoothed_delta(m: Real, eta: Real, s: Real, epsilon: Real, kappa: Real = 0) -> tuple[float, float]:
    """M and delta when a minimiser known within ``eta`` is released with Gaussian noise of deviation ``s``.

    Rounded up. The library needs none of this: it rounds the exact minimiser. ``kappa``: of a loss of class T.

    >>> round(smoothed_delta("0.2", "1e-10", "1e-6", 1)[0], 12)
    0.2000001
    """
    size, extra = nonnegative(m, "m") ** 2, (2 * nonnegative(eta, "eta") / positive(s, "s")) ** 2
    level = rational(epsilon, "epsilon")
    atom = RunCost(size, nonnegative(kappa, "kappa"), "class_t").atom
    cost = composition.delta(mu_squared=extra, atoms=(atom,), epsilon=level)
    return balls.above(lambda: balls.ball(size + extra).sqrt()), cost


def renyi_add(alpha: Real, m: Real) -> float:
    """The Renyi divergence of order alpha when a row is added, any admissible loss; rounded up."""
    order, size = _order(alpha), nonnegative(m, "m")
    less = order - 1
    if not size:
        return 0.0
    return balls.above(
        lambda: balls.ball(order * size**2 / 2) + (2 * cdf(balls.ball(less * size))).log() / balls.ball(less)
    )


def renyi_remove(alpha: Real, m: Real, kappa: Real) -> float:
    """The Renyi divergence of order alpha when a row is removed, loss of class T; rounded up."""
    order, size, ratio = _order(alpha), nonnegative(m, "m"), nonnegative(kappa, "kappa")
    return _renyi_floor(order, size, critical_loss("class_t", size**2, ratio))


def renyi_remove_general(alpha: Real, m: Real, kappa: Real) -> float:
    """The Renyi divergence of order alpha when a row is removed, any admissible loss; rounded up."""
    order, size, ratio = _order(alpha), nonnegative(m, "m"), nonnegative(kappa, "kappa")
    return balls.above(lambda: _floor_ball(order, size, Fraction(0)) + balls.ball(ratio).log1p())


def _renyi_floor(order: Fraction, m: Fraction, floor: Fraction) -> float:
    return balls.above(lambda: _floor_ball(order, m, floor))


def _floor_ball(order: Fraction, m: Fraction, floor: Fraction) -> arb:
    """Of the loss max(m t + m^2/2, floor), t standard normal."""
    less = order - 1
    if not m:
        return balls.ball(floor)
    at = balls.ball((floor - m**2 / 2) / m)
    low = balls.exp(balls.ball(less * floor)) * cdf(at)
    high = balls.exp(balls.ball(less * order * m**2 / 2)) * cdf(balls.ball(less * m) - at)
    return (low + high).log() / balls.ball(less)


def _largest(good: Callable[[Fraction], bool], high: Fraction) -> Fraction:
    """A float near the largest good number up to ``high``: halving, and only what was proved good is returned."""
    return high if good(high) else roots.bisect(good, Fraction(0), high, _HALVINGS, middle=roots.float_mean)[0]


def _count(runs: int) -> int:
    if not isinstance(runs, int) or not 1 <= runs <= 64:
        raise ValueError("runs must be a whole number from 1 to 64")
    return runs


def _order(alpha: Real) -> Fraction:
    order = rational(alpha, "alpha")
    if order <= 1:
        raise ValueError("alpha, the order of a Renyi divergence, must be above 1")
    return order
