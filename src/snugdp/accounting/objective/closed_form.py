"""One run of logistic type in closed form: its profile, its Renyi curve, and its delta beside a Gaussian release.

Simple and quick, and looser than the atom of ``run.Run`` wherever they differ. Proofs: glm.proof.md.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from snugdp.accounting.gaussian import cdf, delta_ball, nonnegative
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational

PROOF = "accounting/objective/glm.proof.md#theorem-1"


def remove_profile(m: Real, kappa: Real, epsilon: Real) -> float:
    """The delta at any real epsilon when a row is removed: Gaussian but for a chord below e_c; rounded up.

    >>> remove_profile("0.2", "0.5", "0.6") == remove_profile("0.2", 0, "0.6")
    True
    """
    square, limit = _parts(m, kappa)
    level = rational(epsilon, "epsilon")
    return min(1.0, balls.above(lambda: _remove(square, limit, level)))


def add_profile(m: Real, kappa: Real, epsilon: Real) -> float:
    """The delta at any real epsilon when a row is added: Gaussian from 0 on; rounded up."""
    square, limit = _parts(m, kappa)
    level = rational(epsilon, "epsilon")
    if level >= 0:
        return min(1.0, balls.above(lambda: delta_ball(square, level)))

    def dual() -> arb:
        grown = balls.exp(balls.ball(level))
        return 1 - grown + grown * _remove(square, limit, -level)

    return min(1.0, balls.above(dual))


def beside(m: Real, kappa: Real, mu: Real, epsilon: Real) -> tuple[float, float]:
    """Deltas of adding and removing a row, for the run and a release of parameter mu > 0, epsilon >= 0; rounded up.

    >>> beside("0.2", "0.01", "0.1", 1)[0] == beside("0.2", "0.01", "0.1", 1)[1]
    True
    """
    square, limit = _parts(m, kappa)
    other, level = nonnegative(mu, "mu") ** 2, nonnegative(epsilon, "epsilon")

    def gap() -> arb:
        return delta_ball(square, Fraction(0)) - delta_ball(square, limit)

    def whole() -> arb:
        return delta_ball(square + other, level)

    def added() -> arb:
        at = balls.ball(-level - other / 2) / balls.ball(other).sqrt()
        return whole() + gap() * balls.exp(balls.ball(level)) * cdf(at)

    def removed() -> arb:
        share = gap() / -balls.ball(-limit).expm1()
        return whole() + share * delta_ball(other, level - limit)

    if not limit:
        return (balls.above(whole),) * 2
    return (balls.above(added) if other else balls.above(whole)), balls.above(removed)


def renyi(alpha: Real, m: Real, kappa: Real) -> tuple[float, float]:
    """Renyi divergences of order alpha when a row is added and removed; rounded up.

    >>> renyi(2, "0.5", 0)
    (0.25, 0.25)
    """
    order, (square, limit) = rational(alpha, "alpha"), _parts(m, kappa)
    if order <= 1:
        raise ValueError("alpha, the order of a Renyi divergence, must be above 1")
    if not limit or not square:
        exact = balls.above(lambda: balls.ball(max(order * square / 2, limit)))
        return (exact, exact)
    less = order - 1

    def masses() -> tuple[arb, arb, arb]:
        """The root of m, and what lies at losses 0 and e_c under the first law."""
        m = balls.ball(square).sqrt()
        cut = balls.ball(limit - square / 2) / m
        first, second = cdf(cut) - cdf(-m / 2), cdf(cut + m) - cdf(m / 2)
        high = (first - second) / -balls.ball(-limit).expm1()
        return m, first - high, high

    def removed() -> arb:
        m, low, high = masses()
        k = balls.ball(less)
        cut = balls.ball(limit - square / 2) / m
        outer = balls.exp(balls.ball(less * order * square / 2)) * (cdf(-m / 2 - k * m) + cdf(k * m - cut))
        return (outer + low + high * balls.exp(balls.ball(less * limit))).log() / k

    def added() -> arb:
        m, low, high = masses()
        k = balls.ball(less)
        far = -(balls.ball(limit) / m + m / 2) - k * m
        outer = balls.exp(balls.ball(less * order * square / 2)) * (cdf(m / 2 + k * m) + cdf(far))
        return (outer + low + high * balls.exp(balls.ball(-order * limit))).log() / k

    return balls.above(added), balls.above(removed)


def _remove(square: Fraction, limit: Fraction, level: Fraction) -> arb:
    if level <= 0 or level >= limit:
        return delta_ball(square, level)
    share = balls.ball(level).expm1() / balls.ball(limit).expm1()
    return (1 - share) * delta_ball(square, Fraction(0)) + share * delta_ball(square, limit)


def _parts(m: Real, kappa: Real) -> tuple[Fraction, Fraction]:
    square = nonnegative(m, "m") ** 2
    return square, max(Fraction(0), nonnegative(kappa, "kappa") - square / 2)
