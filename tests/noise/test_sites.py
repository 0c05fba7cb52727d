"""Every place where noise is drawn: its law, its grid, extreme numbers, and what is said about mistakes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from snugdp.noise import (
    Discrete,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Gaussian,
    Gumbel,
    Laplace,
    Noise,
    Simulation,
)
from snugdp.noise.exact.deviate import Deviate, largest
from snugdp.noise.exact.refine import Bits
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit.laws.samples import LIGHT
from snugdp_studies.audit.laws.sources import REAL, SITES, WHOLE, laws
from tests.effort import sampled

SOURCES: list[Noise] = [Exact(), Simulation(7)]


@pytest.mark.slow
@pytest.mark.parametrize("site", SITES)
def test_every_site_of_a_simulation_draws_its_law(site: str) -> None:
    """As an audit sees it, which looks at the exact source: other scales, shapes and places would have been seen."""
    assert [str(finding) for finding in laws(SOURCES[1], LIGHT, only=(site,)) if not finding.passed] == []


def test_whole_numbers_are_pythons_and_no_stretch_is_no_noise() -> None:
    assert {type(value) for value in Exact().add_integers(Secret(np.arange(9)), Gaussian(4))} == {int}
    assert Exact().add(Secret(Fraction(5, 2)), Laplace(1), stretch=Secret(0)) == 3


def test_argmax_over_thousands_and_over_giants() -> None:
    noise = Exact()
    many: list[int | Fraction] = [0] * 3000
    many[1234] = 10**6
    for law in REAL:
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


@sampled(2)
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
        for law in (*REAL, *WHOLE):
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
