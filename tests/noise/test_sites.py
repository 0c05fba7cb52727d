"""Every place where noise is added: right at the declared scale, caught at any other."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from snugdp.noise import (
    Continuous,
    Discrete,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Gaussian,
    Gumbel,
    Laplace,
    Law,
    Noise,
    Simulation,
    tail,
)
from snugdp.noise.exact.deviate import Deviate, largest
from snugdp.noise.exact.refine import Bits
from snugdp.noise.recording import scaled
from snugdp.secrecy.secret import Secret
from tests.effort import repeated

from .noise_checks import ALPHA, CONTINUOUS, LAWS, WRONG, WRONG_FEW, draws, rate_p, spread, suspicious, winning

SOURCES: list[Noise] = [Exact(), Simulation(7)]
names = pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
sources = pytest.mark.parametrize("noise", SOURCES, ids=lambda noise: type(noise).__name__)
FEW = [Fraction(1), *WRONG_FEW]
factors = pytest.mark.parametrize("factor", [Fraction(1), *WRONG], ids=str)
few_factors = pytest.mark.parametrize("factor", FEW, ids=str)


@repeated
@sources
@names
@few_factors
def test_add(noise: Noise, law: Law, factor: Fraction) -> None:
    secret = Secret(10**30 + 7)
    drawn = [int(noise.add(secret, scaled(law, factor)) - 10**30 - 7) for _ in range(draws(3000))]
    assert suspicious(drawn, law) == (factor != 1)


@sources
@names
@factors
def test_add_integers(noise: Noise, law: Law, factor: Fraction) -> None:
    n = 4000 if isinstance(law, Gumbel) else 20_000
    values = np.arange(n) - 500
    released = noise.add_integers(Secret(values), scaled(law, factor))
    assert all(type(value) is int for value in released)
    assert suspicious([a - b for a, b in zip(released, values.tolist(), strict=True)], law) == (factor != 1)


@repeated
@sources
@names
@few_factors
def test_at_least(noise: Noise, law: Law, factor: Fraction) -> None:
    """A test far above and one far below the threshold: how often the noise turns the answer around."""
    distance = math.ceil(1.4 * spread(law))
    n = draws(2800 if isinstance(law, Gaussian | DiscreteGaussian) else 4500)
    used = scaled(law, factor)
    up = sum(noise.at_least(Secret(5), used, 5 + distance) for _ in range(n))
    down = sum(not noise.at_least(Secret(5 + distance), used, 5) for _ in range(n))
    above, below = tail(law, distance), 1 - tail(law, -distance)
    deviation = (up + down) - n * (above + below)
    z = deviation / math.sqrt(n * (above * (1 - above) + below * (1 - below)))
    assert (math.erfc(abs(z) / math.sqrt(2)) < ALPHA) == (factor != 1)


@names
def test_at_least_exactly_on_the_threshold(law: Law) -> None:
    noise, n = Exact(), 1500
    for distance in (0, Fraction(1, 2)):
        passed = sum(noise.at_least(Secret(Fraction(9)), law, 9 + distance) for _ in range(n))
        assert rate_p(passed, n, tail(law, distance)) > ALPHA


@repeated
@sources
@few_factors
@pytest.mark.parametrize("law", CONTINUOUS, ids=lambda law: type(law).__name__)
def test_argmax(noise: Noise, law: Continuous, factor: Fraction) -> None:
    used = scaled(law, factor)
    assert not isinstance(used, Discrete)
    lead, n = round(2 * spread(law)), draws(6500 if isinstance(law, Laplace) else 5000)
    scores: Secret[Sequence[int | Fraction]] = Secret([0, Fraction(lead)])
    won = sum(noise.argmax(scores, used) for _ in range(n))
    assert (rate_p(won, n, winning(law, lead)) < ALPHA) == (factor != 1)


def test_argmax_over_thousands_and_over_giants() -> None:
    noise = Exact()
    many: list[int | Fraction] = [0] * 3000
    many[1234] = 10**6
    for law in CONTINUOUS:
        assert noise.argmax(Secret(many), law) == 1234
        assert noise.argmax(Secret([10**500, Fraction(10**500) + Fraction(1, 10**5), -(10**900)]), law) < 2
        assert noise.argmax(Secret([3]), law) == 0


def test_argmax_reads_on_when_two_sums_look_the_same() -> None:
    law, winners = Laplace(1), set()
    for _ in range(40):
        twins = [(Fraction(7), Deviate(False, 1, Bits(12345, 64))) for _ in range(3)]
        winners.add(largest(twins, law))
        assert min(drawn.fraction.count for _, drawn in twins) >= 128
    assert winners == {0, 1, 2}


def test_argmax_is_softmax_over_five_with_gumbel_noise() -> None:
    noise, n = Exact(), 2500
    scores: list[int | Fraction] = [0, 2, Fraction(7, 2), -1, 2]
    wins = np.bincount([noise.argmax(Secret(scores), Gumbel(2)) for _ in range(n)], minlength=5)
    weights = np.exp(np.array([float(score) for score in scores]) / 2)
    for count, share in zip(wins.tolist(), (weights / weights.sum()).tolist(), strict=True):
        assert rate_p(count, n, share) > ALPHA


@sources
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 65])
def test_choice(noise: Noise, n: int) -> None:
    counts = np.bincount([noise.choice(n) for _ in range(6000)], minlength=n)
    assert len(counts) == n
    assert all(rate_p(count, 6000, 1 / n) > ALPHA / 10 for count in counts.tolist())


@repeated
@pytest.mark.parametrize("stretch", [Fraction(1, 3), Fraction(5)])
def test_a_stretch_multiplies_the_noise(stretch: Fraction) -> None:
    for factor in FEW:
        law = Gaussian(factor * 4 / stretch)
        drawn = [int(Exact().add(Secret(0), law, stretch=Secret(stretch))) for _ in range(draws(1500))]
        assert suspicious(drawn, Gaussian(4)) == (factor != 1)
    assert Exact().add(Secret(Fraction(5, 2)), Laplace(1), stretch=Secret(0)) == 3


@pytest.mark.parametrize("grid", [-30, -3, 0, 5])
def test_add_lands_on_the_grid_with_the_right_spread(grid: int) -> None:
    step = Fraction(2) ** grid
    value = Fraction(1, 3)
    drawn = [Exact().add(Secret(value), Laplace(20), grid=grid) for _ in range(1000)]
    assert all((z / step).denominator == 1 for z in drawn)
    sizes = np.array([abs(float(z - value)) for z in drawn])
    assert abs(sizes.mean() / 20 - 1) < 0.3


def test_infinity_passes_and_nothing_private_raises() -> None:
    giants: list[int | Fraction] = [0, 10**400, -(10**400), Fraction(1, 10**400), Fraction(10**400, 3)]
    for noise in SOURCES:
        for law in LAWS:
            assert noise.at_least(Secret(math.inf), law, 10**9)
            assert not noise.at_least(Secret(-math.inf), law, -(10**9))
            assert not noise.at_least(Secret(math.nan), law, 0)
            assert noise.at_least(Secret(0.5), law, -(10**9))
            assert [noise.at_least(Secret(Fraction(giant)), law, 10**9) for giant in giants][1:3] == [True, False]
            if not isinstance(law, Discrete):
                assert len([noise.add(Secret(Fraction(giant)), law, grid=-9) for giant in giants]) == len(giants)
        assert noise.add_integers(Secret([10**40, -(2**63)]), Gaussian(1))[0] > 10**39
        assert noise.add_integers(Secret(np.array([], dtype=np.int64)), Gaussian(1)) == []


def test_extreme_scales_work() -> None:
    noise = Exact()
    for exponent in (-400, -60, 60, 400):
        wide = Fraction(10) ** exponent
        for law in (Laplace(wide), Gaussian(wide), Gumbel(wide), DiscreteLaplace(wide), DiscreteGaussian(wide)):
            values = noise.add_integers(Secret([0] * 30), law)
            assert len(values) == 30
            assert any(values) == (exponent > 0)


def test_public_mistakes_are_named_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(n: int) -> bytes:
        raise AssertionError("drew before checking")

    monkeypatch.setattr("os.urandom", refuse)
    value = Secret(1)
    for noise in (Exact(), Simulation(1)):
        with pytest.raises(TypeError, match="law must be one of"):
            noise.add(value, "laplace")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="grid must be 0"):
            noise.add(value, DiscreteLaplace(1), grid=1)
        with pytest.raises(ValueError, match="stretch"):
            noise.add(value, DiscreteGaussian(1), stretch=Secret(2))
        with pytest.raises(TypeError, match="grid"):
            noise.add(value, Laplace(1), grid=0.5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="law must be one of Laplace, Gaussian, Gumbel"):
            noise.argmax(Secret([1, 2]), DiscreteLaplace(1))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="at least one score"):
            noise.argmax(Secret([]), Laplace(1))
        with pytest.raises(ValueError, match="threshold"):
            noise.at_least(value, Laplace(1), math.inf)
        for n in (0, -3):
            with pytest.raises(ValueError, match="n must be"):
                noise.choice(n)


def test_a_simulation_says_what_it_is() -> None:
    assert not Simulation(1).private
    assert Exact().private
    assert "NOT PRIVATE" in repr(Simulation(1))
    again = [Simulation(5).add_integers(Secret([0] * 40), Gaussian(100)) for _ in range(2)]
    assert again[0] == again[1]
    assert Simulation(6).add_integers(Secret([0] * 40), Gaussian(100)) != again[0]
