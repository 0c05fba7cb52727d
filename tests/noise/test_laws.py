"""The declared probabilities, against independent formulas."""

from fractions import Fraction
from functools import cache

import mpmath  # type: ignore[import-untyped]
import pytest

from snugdp.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Gumbel,
    Laplace,
    Law,
    cdf,
    grid_below,
    pmf,
    rounded_pmf,
    tail,
)
from tests.effort import sampled

mpmath.mp.dps = 60
RELATIVE = 4e-16


def number(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def close(value: float, expected: mpmath.mpf) -> bool:
    return bool(abs(mpmath.mpf(value) - expected) <= RELATIVE * expected)


@cache
def theta(variance: Fraction, start: int = -400) -> mpmath.mpf:
    v = number(variance)
    return mpmath.fsum(mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * v)) for z in range(start, 401))


@sampled(2)
@pytest.mark.parametrize("variance", ["1/1000", "1/7", "1/6", "1/5", "1", "7/3", "400"])
@pytest.mark.parametrize("x", [0, 1, -3, 12])
def test_discrete_gaussian(variance: str, x: int) -> None:
    law = DiscreteGaussian(variance)
    v = number(law.variance)
    expected = mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * v)) / theta(law.variance)
    got = pmf(law, x)
    assert close(got, expected) or (got == 0.0 and expected < 1e-320)
    above = theta(law.variance, x) / theta(law.variance)
    assert close(tail(law, x), above) or (tail(law, x) == 0.0 and above < 1e-320)


@pytest.mark.parametrize("scale", ["1/2", "7/3", "50", "1000000"])
@pytest.mark.parametrize("x", [0, 1, -3, 200])
def test_discrete_laplace(scale: str, x: int) -> None:
    law = DiscreteLaplace(scale)
    q = mpmath.exp(-1 / number(law.scale))
    assert close(pmf(law, x), (1 - q) / (1 + q) * q ** abs(x))
    assert close(tail(law, x), q**x / (1 + q) if x > 0 else 1 - q ** (1 - x) / (1 + q))


def continuous_cdf(law: Law, x: mpmath.mpf) -> mpmath.mpf:
    if isinstance(law, Gaussian):
        return mpmath.erfc(-x / (number(law.sigma) * mpmath.sqrt(2))) / 2
    assert isinstance(law, Laplace | Gumbel)
    t = x / number(law.scale)
    if isinstance(law, Gumbel):
        return mpmath.exp(-mpmath.exp(-t))
    return mpmath.exp(t) / 2 if t < 0 else 1 - mpmath.exp(-t) / 2


@pytest.mark.parametrize("law", [Gaussian("3/10"), Gaussian("7/3"), Laplace("1/3"), Laplace(20), Gumbel("5/4")])
@pytest.mark.parametrize("m", [0, 1, -1, 4, -4, 9])
def test_continuous(law: Laplace | Gaussian | Gumbel, m: int) -> None:
    with mpmath.workdps(400):  # differences of numbers near one
        low, high = continuous_cdf(law, mpmath.mpf(m) - 0.5), continuous_cdf(law, mpmath.mpf(m) + 0.5)
        assert close(rounded_pmf(law, m), high - low)
        assert close(cdf(law, m), continuous_cdf(law, mpmath.mpf(m)))
        assert close(tail(law, m), 1 - continuous_cdf(law, mpmath.mpf(m)))


@pytest.mark.parametrize("law", [Laplace(1), Gaussian(1), DiscreteLaplace(1), DiscreteGaussian(1)])
def test_tails_are_symmetric_and_add_up(law: Law) -> None:
    for x in (-7, -1, 0, 2, 30):
        assert tail(law, x) == cdf(law, -x)
    below = "-2.000001"  # between whole numbers, so the discrete laws have no mass there
    assert tail(law, below) + cdf(law, below) == pytest.approx(1, rel=1e-15)


def test_far_tails_are_accurate_or_zero() -> None:
    assert tail(Gaussian(1), 38) == pytest.approx(2.885428351e-316, rel=1e-5)
    assert tail(Gaussian(1), 10**9) == 0.0
    assert cdf(Gumbel(1), -(10**7)) == 0.0
    assert tail(Gumbel(1), 700) == pytest.approx(9.85967654375977e-305, rel=1e-13)
    assert pmf(DiscreteLaplace(1), 10**30) == 0.0


def test_a_large_spread_is_no_harder() -> None:
    assert pmf(DiscreteGaussian(10**40), 0) == pytest.approx(1 / (1e20 * 2.5066282746310002), rel=1e-14)


def test_parameters_are_exact_and_positive() -> None:
    assert Laplace(0.1).scale == Fraction(1, 10)
    assert Gaussian("1/3") == Gaussian(Fraction(1, 3))
    for make in (Laplace, Gaussian, Gumbel, DiscreteLaplace, DiscreteGaussian):
        for bad in (0, -1, "0.0", float("nan"), float("inf")):
            with pytest.raises(ValueError):
                make(bad)


@pytest.mark.parametrize("scale", ["1", "3/4", "1000001/1000000", "1e-300", "12345678901234567890"])
def test_grid_below(scale: str) -> None:
    spread = Fraction(scale)
    assert 2**20 < spread / Fraction(2) ** grid_below(spread) < 2**22
