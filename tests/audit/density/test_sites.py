"""The probabilities of answers: they sum to one, agree with the declared laws, and hold out in the tails."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from snugdp import noise
from snugdp.audit.density.laws import contest
from snugdp.audit.density.parts import part
from snugdp.audit.density.sites import hessian, log_probability
from snugdp.noise import Finite, Gaussian, cdf, rounded_pmf
from snugdp.noise.exact.weighted import Groups
from snugdp.noise.recording import Site
from snugdp.secrecy.secret import Secret
from tests.mechanisms.noisy_votes import log_probabilities, probabilities

CONTINUOUS: tuple[noise.Law, ...] = (noise.Gaussian("1.3"), noise.Laplace("0.8"), noise.Gumbel("1.1"))
DISCRETE: tuple[noise.Law, ...] = (noise.DiscreteLaplace("1.5"), noise.DiscreteGaussian("2.3"))


def site(method: str, law: noise.Law | None, answer: Any, *inputs: Any, **public: Any) -> Site:
    return Site(method, law, law, tuple(public.items()), answer, tuple(Secret(value) for value in inputs))


def chance(*args: Any, **public: Any) -> float:
    return math.exp(log_probability(site(*args, **public)))


@pytest.mark.parametrize("law", CONTINUOUS + DISCRETE)
def test_sums_have_the_declared_law(law: noise.Law) -> None:
    for m in range(-6, 7):
        declared = noise.pmf(law, m) if law in DISCRETE else noise.rounded_pmf(law, m)  # type: ignore[arg-type]
        assert chance("add", law, Fraction(40 + m), 40, grid=0) == pytest.approx(declared, rel=1e-11)
        assert chance("add_integers", law, [40 + m], [40]) == pytest.approx(declared, rel=1e-11)


@pytest.mark.parametrize("law", CONTINUOUS)
@pytest.mark.parametrize("grid", [-14, -4, 1])
def test_cells_of_any_width_have_the_chance_of_their_ends(law: noise.Law, grid: int) -> None:
    width, value = Fraction(2) ** grid, Fraction(1, 3)
    for cells in (-3, 0, 1, 5):
        answer = cells * width
        ends = [answer - value - width / 2, answer - value + width / 2]
        found = chance("add", law, answer, value, grid=grid)
        assert found == pytest.approx(noise.cdf(law, ends[1]) - noise.cdf(law, ends[0]), rel=1e-9)


@pytest.mark.parametrize("law", CONTINUOUS)
def test_a_stretch_is_a_wider_law(law: noise.Law) -> None:
    direct = chance("add", law, Fraction(3), 1, grid=0)
    assert chance("add", law, Fraction(6), 2, 2, grid=1) == pytest.approx(direct, rel=1e-12)
    assert log_probability(site("add", law, Fraction(3), 3, 0, grid=0)) == 0.0
    assert log_probability(site("add", law, Fraction(4), 3, 0, grid=0)) == -math.inf


@pytest.mark.parametrize("law", CONTINUOUS + DISCRETE)
@pytest.mark.parametrize("threshold", [Fraction(-7, 2), Fraction(0), Fraction(1), Fraction(5, 2), Fraction(9)])
def test_decisions_have_the_declared_tails(law: noise.Law, threshold: Fraction) -> None:
    yes = chance("at_least", law, True, 1, threshold=threshold)
    assert yes == pytest.approx(noise.tail(law, threshold - 1), rel=1e-10)
    assert yes + chance("at_least", law, False, 1, threshold=threshold) == pytest.approx(1, rel=1e-12)
    if law not in DISCRETE:
        both = chance("reach", law, np.array([True, False]), np.array([1, 4]), threshold=threshold)
        assert both == pytest.approx(yes * (1 - noise.tail(law, threshold - 4)), rel=1e-9)


def test_infinite_values_decide_alone() -> None:
    assert log_probability(site("at_least", noise.Laplace(1), True, math.inf, threshold=Fraction(3))) == 0.0
    assert log_probability(site("at_least", noise.Laplace(1), False, math.inf, threshold=Fraction(3))) == -math.inf


@pytest.mark.parametrize("law", [noise.Gaussian(2), noise.Laplace(2), noise.Gumbel(2)])
@pytest.mark.parametrize("scores", [(5, 5), (9, 5, 1), (0, 30, 29, 3), (7,)])
def test_contests_have_chances_that_sum_to_one(law: noise.Law, scores: tuple[int, ...]) -> None:
    found = [chance("argmax", law, place, scores) for place in range(len(scores))]
    assert sum(found) == pytest.approx(1, abs=1e-10)
    known: Any = probabilities(np.array(scores), type(law).__name__.lower(), 2.0)  # type: ignore[arg-type]
    assert np.allclose(found, known, atol=2e-10)


def test_contests_far_in_the_tail() -> None:
    scores = (0.0, -20.0, -33.0)
    assert np.allclose(contest(scores, "Gaussian"), log_probabilities(scores, 1.0), rtol=1e-9)
    laplace = contest((0.0, -50.0), "Laplace")[1]
    assert laplace == pytest.approx(math.log(0.25 * (2 + 50) * math.exp(-50)), rel=1e-12)


def test_many_contests_are_a_product() -> None:
    rows = np.array([[4, 2, 1], [0, 0, 7]])
    one = log_probability(site("argmaxes", noise.Gaussian(3), np.array([0, 1]), rows))
    two = log_probability(site("argmax", noise.Gaussian(3), 0, [4, 2, 1])) + log_probability(
        site("argmax", noise.Gaussian(3), 1, [0, 0, 7])
    )
    assert one == pytest.approx(two, rel=1e-12)


def test_tails_stay_numbers() -> None:
    far = Fraction(10**6)
    for law in (noise.Gaussian(1), noise.Laplace(1), noise.DiscreteLaplace(1), noise.DiscreteGaussian(1)):
        assert math.isfinite(log_probability(site("add", law, far, 0, grid=0)))
        assert math.isfinite(log_probability(site("at_least", law, True, 0, threshold=far)))
    gap = [log_probability(site("add", noise.Gaussian(1), far, v, grid=-30)) for v in (0, 1)]
    assert gap[1] - gap[0] == pytest.approx(10**6 - 0.5, rel=1e-9)


def test_coins_and_values_shown_as_they_are() -> None:
    assert chance("chance", None, True, Fraction(1, 3)) == pytest.approx(1 / 3)
    assert chance("chance", None, False, Fraction(1, 3)) == pytest.approx(2 / 3)
    assert log_probability(site("chance", None, False, Fraction(3, 2))) == -math.inf
    assert log_probability(site("reveal", None, [1.5, math.nan], [1.5, math.nan])) == 0.0
    assert log_probability(site("reveal", None, [1.5], [1.25])) == -math.inf
    assert log_probability(site("choice", None, 3, n=4)) == 0.0


def test_keys_have_the_chances_of_all_that_is_shown_and_of_all_that_is_not() -> None:
    law, counts = Finite(-1, (1, 2, 1)), (["a", "b"], np.array([2, 1]))

    def of(*answer: tuple[str, int]) -> float:
        public = (("law", law), ("threshold", 2))
        return log_probability(Site("keys_above", None, None, public, list(answer), (Secret(counts),)))

    assert math.exp(of(("a", 3))) == pytest.approx(1 / 4 * 3 / 4)
    assert of(("c", 2)) == of(("a", 9)) == -math.inf
    answers = [[*((("a", a),) if a else ()), *((("b", b),) if b else ())] for a in (0, 2, 3) for b in (0, 2)]
    assert sum(math.exp(of(*one)) for one in answers) == pytest.approx(1)
    gauss = Gaussian("1.3")
    found = chance("keys_above", gauss, [("a", 3)], counts, threshold=2)
    assert found == pytest.approx(rounded_pmf(gauss, 1) * cdf(gauss, Fraction(1, 2)))
    one, two = (site("keys_above", gauss, [], each, threshold=2) for each in (counts, (["a"], np.array([2]))))
    assert part(one, two).other
    assert not part(one, one).other


def test_unknown_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="does not know"):
        log_probability(site("whisper", None, 3))


def test_the_density_of_a_posterior() -> None:
    gram, cross, theta = [[4, 1], [1, 9]], [3, -2], [Fraction(1, 4), Fraction(-3, 8)]
    A = np.array([[4 * 0.5 + 2, 0.5], [0.5, 9 * 0.5 + 2]])
    known = stats.multivariate_normal(np.linalg.solve(A, [1.5, -1.0]), np.linalg.inv(3 * A)).logpdf([0.25, -0.375])
    found = site("posterior", None, theta, gram, cross, unit=Fraction(1, 2), ridge=Fraction(2), precision=Fraction(3))
    assert log_probability(found) == pytest.approx(float(known), rel=1e-12)


class Quartic:
    """F = sum of theta**4 / 4 + theta**2 + theta_0 theta_1 / 2: its gradient is exact."""

    dimension, modulus, smoothness = 2, Fraction(1), Fraction(100)

    def gradient(self, theta: Sequence[Fraction], level: int) -> tuple[list[Fraction], Fraction]:
        crossed = list(reversed(theta)) if len(theta) > 1 else [Fraction(0)]
        return [t**3 + 2 * t + c / 2 for t, c in zip(theta, crossed, strict=True)], Fraction(0)

    def solve(self, b: Any) -> Any:
        raise NotImplementedError

    def correct(self, theta: Any, residual: Any) -> Any:
        raise NotImplementedError


def test_the_density_of_a_minimiser_in_one_dimension_integrates_to_the_normal_law() -> None:
    t = np.linspace(-3, 3, 601)
    density = [chance("minimiser", noise.Gaussian(2), [Fraction(float(x))], Quartic()) for x in t]
    assert np.trapezoid(density, t) == pytest.approx(1, abs=1e-4)
    upto = np.trapezoid(density[:401], t[:401])  # below 1 where the tilt is above minus the slope
    assert upto == pytest.approx(float(stats.norm.cdf(3 / 2)), abs=1e-4)


def test_the_hessian_by_differences() -> None:
    theta = [Fraction(1, 2), Fraction(-1, 4)]
    known = [[3 / 4 + 2, 0.5], [0.5, 3 / 16 + 2]]
    assert np.allclose(hessian(theta, Quartic()), known, rtol=1e-9)


GROUPS = Groups(np.array([0, 3, 3]), np.array([3, 5, 2]), np.array([2, 0, 0]), np.array([0, 1, 3]))


def test_positions_of_weighted_groups() -> None:
    """Where groups overlap, the masses of a position add up."""
    e = math.exp(-1)
    mass = [e, e, e, 10, 10, 2, 2, 2]
    for place, one in enumerate(mass):
        found = chance("weighted_choice", None, place, GROUPS, rate=Fraction(1, 2))
        assert found == pytest.approx(one / sum(mass), rel=1e-12)
    assert log_probability(site("weighted_choice", None, 8, GROUPS, rate=Fraction(1, 2))) == -math.inf


def test_the_part_of_a_weighted_choice_is_its_range() -> None:
    def of(other: Groups) -> Any:
        pair = (site("weighted_choice", None, 0, groups, rate=Fraction(1, 4)) for groups in (GROUPS, other))
        return part(*pair)

    moved = Groups(np.array([0, 2, 3, 3]), np.array([2, 1, 5, 2]), np.array([3, 1, 1, 1]), np.array([0, 0, 1, 3]))
    assert of(GROUPS).epsilon == 0
    assert of(GROUPS).gumbel
    assert of(moved).epsilon == Fraction(2, 4)
    assert of(replace(GROUPS, weight=np.array([0, 2, 3]))).epsilon == math.inf
    assert of(replace(GROUPS, count=np.array([3, 6, 2]))).epsilon == math.inf
    with pytest.raises(ValueError, match="overlap"):
        of(replace(GROUPS, level=np.array([2, 0, 1])))


def test_parts_are_exact() -> None:
    def of(method: str, law: noise.Law | None, one: Any, two: Any) -> Any:
        return part(site(method, law, None, *one, grid=0), site(method, law, None, *two, grid=0))

    third = Fraction(1, 3)
    assert of("add", noise.Gaussian(2), [third], [Fraction(1)]).mu_squared == Fraction(1, 9)
    assert of("add_integers", noise.Gaussian(3), [[1, 2]], [[2, 4]]).mu_squared == Fraction(5, 9)
    assert of("at_least", noise.DiscreteLaplace(4), [7], [6]).epsilon == Fraction(1, 4)
    assert of("at_least", noise.DiscreteLaplace(4), [math.inf], [math.inf]).epsilon == 0
    assert of("at_least", noise.DiscreteLaplace(4), [math.inf], [6]).epsilon == math.inf
    assert of("argmax", noise.Gumbel(4), [[3, 3, 3]], [[4, 4, 2]]).epsilon == Fraction(2, 4)
    assert of("argmaxes", noise.Gaussian(2), [np.array([[3, 3]])], [np.array([[4, 2]])]).mu_squared == Fraction(1, 2)
    assert of("reveal", None, [1], [2]).epsilon == math.inf
    assert of("posterior", None, [[[1]], [1]], [[[2]], [1]]).other
    assert not of("posterior", None, [[[1]], [1]], [[[1]], [1]]).other


@pytest.mark.parametrize("law", [noise.Laplace(1), noise.Gumbel(1)])
def test_no_contest_gives_away_more_than_its_part(law: noise.Law) -> None:
    for change in itertools.product((-1, 0, 1), repeat=3):
        one, two = [3, 2, 0], [a + b for a, b in zip((3, 2, 0), change, strict=True)]
        bound = float(part(site("argmax", law, 0, one), site("argmax", law, 0, two)).epsilon)
        for place in range(3):
            pair = [log_probability(site("argmax", law, place, scores)) for scores in (one, two)]
            assert abs(pair[0] - pair[1]) <= bound + 1e-9
