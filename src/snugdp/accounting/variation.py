"""Total variation: the charge for a float solver or sampler in place of the ideal one.

The ideal release is proved private; the release made differs from it in law by at most tau. Each function
bounds tau, rounded up and at most 1, and ``charge`` says what tau costs. Proofs: variation.proof.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from flint import arb

from snugdp.accounting.gaussian import nonnegative, positive, probability
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real, rational, typed_up


def random_offset(
    error: Real, dimension: int, grid: Real, *, offset_bits: int | None = None, failure: Real = 0
) -> float:
    """Rounding to a grid moved by a fresh public random offset: no property of the law is used.

    ``error`` bounds the Euclidean distance of the computed point from the ideal one, except with probability
    ``failure``; ``offset_bits`` is the number of random bits of each offset, None for a continuous one.

    >>> round(random_offset("1e-12", 4, "1e-3"), 18)
    2e-09
    """
    reach, step = nonnegative(error, "error"), positive(grid, "grid")
    d, lost = _count(dimension), probability(failure, "failure")
    if offset_bits is not None and offset_bits < 0:
        raise ValueError("offset_bits must be at least 0")
    lattice = Fraction(0) if offset_bits is None else Fraction(d, 1 << offset_bits)
    return _at_most_one(lambda: balls.ball(lost + lattice) + arb(d).sqrt() * balls.ball(reach / step))


def unimodal(error: Real, grid: Real, peaks: Iterable[Real], *, failure: Real = 0) -> float:
    """Rounding to a fixed grid when every coordinate's law is unimodal with density at most its peak.

    ``error`` bounds every coordinate's error. Not for the minimiser of a regression: it need not be unimodal.

    >>> unimodal("1e-6", "1/16", [gaussian_peak(1)]) < 3.3e-5
    True
    """
    reach, step = nonnegative(error, "error"), positive(grid, "grid")
    lost = probability(failure, "failure")
    tops = [nonnegative(peak, "a peak") for peak in peaks]
    parts = (min(Fraction(1), 2 * reach * (1 / step + top)) for top in tops)
    return min(1.0, typed_up(lost + sum(parts, Fraction(0))))


def bounded_density(
    error: Real, grid: Real, dimension: int, *, density: Real, radius: Real, tail: Real, failure: Real = 0
) -> float:
    """Rounding to a fixed grid when every coordinate has a bounded density and a tail bound outside a radius.

    >>> bounded_density("1e-12", "1e-3", 1, density=1, radius=10, tail=0)
    4.0002e-08
    """
    reach, step = nonnegative(error, "error"), positive(grid, "grid")
    top, wide = nonnegative(density, "density"), nonnegative(radius, "radius")
    outside, lost = probability(tail, "tail"), probability(failure, "failure")
    each = min(Fraction(1), 2 * reach * top * (2 * wide / step + 1) + outside)
    return min(1.0, typed_up(lost + _count(dimension) * each))


def gaussian_peak(deviation: Real) -> float:
    """The largest density of a Gaussian of this standard deviation; rounded up."""
    spread = positive(deviation, "deviation")
    return balls.above(lambda: 1 / (balls.ball(spread) * (2 * arb.pi()).sqrt()))


def charge(epsilon: Real, delta: Real, variation: Real) -> float:
    """The delta of a release within total variation of one that is (epsilon, delta)-DP; rounded up.

    Guarantee: delta + (1 + exp(epsilon)) variation (variation.proof.md, Theorem 3).

    >>> round(charge(0, "1e-6", "1e-9"), 15)
    1.002e-06
    """
    level, ideal = rational(epsilon, "epsilon"), probability(delta, "delta")
    tau = nonnegative(variation, "variation")
    return _at_most_one(lambda: balls.ball(ideal) + (1 + balls.exp(balls.ball(level))) * balls.ball(tau))


def solver_error(
    gradient: Real, gradient_error: Real, convexity: Real, *, noise_lattice: Real = 0, dimension: int = 1
) -> float:
    """How far a point with a small gradient is from the minimiser of a strongly convex function; rounded up.

    ``gradient`` is the computed norm, ``gradient_error`` a proved bound on its error, ``convexity`` the
    proved modulus, ``noise_lattice`` the spacing to which the noise was rounded.

    >>> round(solver_error("1e-9", "1e-12", 10), 18)
    1.001e-10
    """
    seen, slack = nonnegative(gradient, "gradient"), nonnegative(gradient_error, "gradient_error")
    modulus, lattice = positive(convexity, "convexity"), nonnegative(noise_lattice, "noise_lattice")
    d = _count(dimension)
    return balls.above(
        lambda: balls.ball((seen + slack) / modulus) + balls.ball(lattice / (2 * modulus)) * arb(d).sqrt()
    )


def _at_most_one(function: balls.Function) -> float:
    return min(1.0, balls.above(function))


def _count(dimension: int) -> int:
    if dimension < 1:
        raise ValueError("dimension must be at least 1")
    return dimension
