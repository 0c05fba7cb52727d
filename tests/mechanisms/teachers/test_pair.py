"""The floats behind the pair of one label and its compositions: against balls, direct sums and dp-accounting."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.fft
from dp_accounting.pld import privacy_loss_distribution
from flint import arb
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from snugdp.core.guarantee import Budget
from snugdp.mechanisms.teachers.distance_test import Ballots, labelling_for
from snugdp.mechanisms.teachers.pair import Composer, composer_for, pair
from snugdp.numerics.balls import ball, precision
from snugdp.numerics.rationals import float_down
from tests.effort import sampled
from tests.mechanisms.noisy_votes import phi

Floats = NDArray[np.float64]

CORNERS = [(0.5, 50, 0.5), (0.5, 0.1, 1e-15), (0.5, 5, 1e-5), (0.7, 10, 0.1), (2.0, 1, 1e-5), (30.0, 0.5, 1e-6)]


def reach(composer: Composer) -> int:
    return math.ceil((10 * composer.shift + composer.shift**2) / composer.step) + 1


def losses(composer: Composer) -> Floats:
    return composer.step * np.arange(-reach(composer), reach(composer) + 1, dtype=np.float64)


def laws(composer: Composer) -> tuple[Floats, Floats]:
    return pair(composer.edges, composer.shift, composer.step, reach(composer))


def exact_lattice_profile(composer: Composer, z: float) -> list[arb]:
    """P - k Q of the losses from each lattice point on, without those above the lattice: Theorem 2, in balls."""
    m, h, left = arb(composer.shift), arb(composer.step), arb(z)
    last = m / 2 - h * reach(composer) / m
    middle, other = phi(-left) - phi(left), phi(-left - m) - phi(left - m)
    merged = math.floor(float((middle / other).log() / h)) if z < 0 else -math.inf
    values = []
    for j in range(-reach(composer), reach(composer)):
        cut, k = m / 2 - h * j / m, (h * j).exp()
        low = cut if cut < left else left
        value = phi(low) - phi(last) - k * (phi(low - m) - phi(last - m))
        if j <= merged:
            value += middle - k * other
        if cut > -left:
            value += phi(cut) - phi(-left) - k * (phi(cut - m) - phi(-left - m))
        values.append(value)
    return values


@sampled(8)
@pytest.mark.parametrize(("sigma", "epsilon", "delta"), CORNERS)
def test_lattice_profiles_are_off_by_a_few_roundings_of_the_tilted_tail(
    sigma: float, epsilon: float, delta: float
) -> None:
    """Theorem 3 allows 2**10 roundings. Differences of numbers near 1 at small sigma gave 25; from small tails, 12."""
    composer = composer_for(sigma, 10, epsilon, delta)
    found, at = laws(composer)[0], losses(composer)
    for node in {0, composer.nodes // 2, 3 * composer.nodes // 5, composer.nodes - 2, composer.nodes - 1}:
        with precision(160):
            mass = [arb(float(p)) for p in found[node]]
            shrunk = [p * (-arb(composer.step) * (j - reach(composer))).exp() for j, p in enumerate(mass)]
            moment = float(np.sum(found[node] * np.exp(composer.tilt * at)))
            above, below, worst = arb(0), arb(0), 0.0
            exact = exact_lattice_profile(composer, float(composer.edges[node]))
            for place in range(len(exact) - 1, -1, -1):
                above, below = above + mass[place + 1], below + shrunk[place + 1]
                off = above - (arb(composer.step) * (place - reach(composer))).exp() * below - exact[place]
                worst = max(worst, abs(float(off)) * math.exp(composer.tilt * float(at[place])) / moment)
        assert worst <= 20 * 2.0**-53


@pytest.mark.parametrize(("sigma", "epsilon", "delta"), [*CORNERS, (1e4, 1, 1e-5)])
def test_pairs_of_nodes_are_ordered_and_share_their_infinite_loss(sigma: float, epsilon: float, delta: float) -> None:
    composer = composer_for(sigma, 10, epsilon, delta)
    (mass, lost), at = laws(composer), losses(composer)
    assert len(set(lost.tolist())) == 1
    assert 0 < lost[0] < 1e-23
    assert 2 * reach(composer) < composer.size  # one law fits into the window
    profiles = mass @ np.maximum(1 - np.exp(at[None, :] - at[:, None]), 0)
    for order in (1, 2):
        moments = mass @ np.exp(order * composer.tilt * at)
        assert (np.diff(moments) >= -1e-13 * moments[1:]).all()
        assert moments[0] >= 1 - 1e-13
    assert all((higher >= lower - 1e-14).all() for lower, higher in pairwise(profiles))


def test_the_shift_is_not_below_the_true_one() -> None:
    for sigma in np.random.default_rng(4).uniform(0.5, 90, 300).tolist():
        assert Fraction(composer_for(sigma, 3, 1.0, 1e-5).shift) ** 2 * Fraction(sigma) ** 2 >= 2


@pytest.mark.parametrize(("sigma", "epsilon", "delta"), [(9.0, 0.9, 1e-4), (0.5, 20.0, 0.4), (2.0, 3.0, 1e-6)])
def test_the_stated_error_holds_above_and_below_the_window_too(sigma: float, epsilon: float, delta: float) -> None:
    """What lies above the window is in the bound by Markov: that far it is from anything that is monotone."""
    composer = composer_for(sigma, 8, epsilon, delta)
    nodes = np.array([composer.nodes // 3, 2 * composer.nodes // 3, composer.nodes - 1])
    counts = np.array([2.0, 3.0, 3.0])
    profile = composer.profile(nodes, counts)
    mass, lost = laws(composer)
    total = np.ones(1)
    for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
        for _ in range(int(count)):
            total = np.convolve(total, mass[node])
    at = composer.step * (np.arange(len(total)) - 8 * reach(composer))
    start = composer.top - composer.size * composer.step
    epsilons = np.concatenate([np.linspace(start - 9, composer.top + 9, 200), [epsilon, composer.top]])
    direct = np.maximum(1 - np.exp(np.minimum(epsilons[:, None] - at, 0)), 0) @ total + 8 * lost[0]
    allowed = profile.error(epsilons)
    assert (np.abs(profile.delta(epsilons) - np.minimum(direct, 1)) <= allowed).all()
    moment = float(counts @ np.log(mass[nodes] @ np.exp(composer.tilt * losses(composer))))
    assert (allowed >= math.exp(moment - composer.tilt * composer.top) * (1 - 1e-9)).all()
    assert (allowed[epsilons < start + composer.step] > 1).all()


def test_transforms_are_as_accurate_in_norm_as_the_proof_assumes() -> None:
    """In the Euclidean norm, not value by value: laws with and without an atom, and products of many powers."""
    generator = np.random.default_rng(1)
    for size in (1 << 9, 1 << 15):
        sharp = np.zeros(size)
        sharp[[0, 1, 2, size - 1]] = 1 - 3e-9, 1e-9, 1e-9, 1e-9
        wide = generator.exponential(size=size) ** 3
        spread = np.exp(-((np.arange(size) - 40.0) ** 2) / 200)
        rows = [law / law.sum() for law in (sharp, wide, spread)]
        found, finer = np.fft.rfft(rows), scipy.fft.rfft(np.array(rows).astype(np.longdouble))
        unit = 2.0**-53
        for one, other in zip(found, finer, strict=True):
            assert np.linalg.norm(one - other) <= 8 * math.log2(size) * unit * np.linalg.norm(other)
        counts = np.array([400.0, 3.0, 2.0])
        product = np.exp(counts @ np.log(found))
        wanted = np.exp(counts @ np.log(finer))
        assert np.linalg.norm(product - wanted) <= (350 * counts.sum() + 200) * unit * math.sqrt(size)
        back, exact = np.fft.irfft(product, size), scipy.fft.irfft(wanted, size)
        assert np.linalg.norm(back - exact) <= (350 * counts.sum() + 200) * unit


@pytest.mark.slow
def test_nodes_are_above_the_true_chance_at_a_sigma_that_no_float_is() -> None:
    """Rounding sigma down lowers q; what is added to log q makes up for it."""
    generator, lower = np.random.default_rng(7), 0
    for _ in range(40):
        sigma = Fraction(int(generator.integers(1000, 40000)), 1999)
        lead = int(generator.integers(1, 12 * math.ceil(sigma)))
        labelling = labelling_for(sigma, 1, Budget(1, 1e-5))
        assert labelling.sigma == float_down(sigma)
        ballots = Ballots.of(np.array([[lead + 20, 20, 20]]))
        with precision(200):
            true = 2 * phi(-lead / (arb(2).sqrt() * ball(sigma)))
            lower += bool(2 * phi(-lead / (arb(2).sqrt() * arb(labelling.sigma))) < true)
            nodes = [
                place for place in range(labelling.composer.nodes) if phi(arb(labelling.composer.edges[place])) >= true
            ]
            least = nodes[0] if nodes else labelling.composer.nodes - 1
        profile = labelling.profile(ballots, 0)
        asked = labelling.composer.profile(np.array([least]), np.array([1.0]))
        assert profile.log_moment >= asked.log_moment
    assert lower > 30


def test_compositions_agree_with_dp_accounting() -> None:
    """The same merged pairs, cut into many cells and composed by dp-accounting from below and from above."""
    sigma, epsilon = 3.0, 1.5
    composer = composer_for(sigma, 9, epsilon, 1e-4)
    nodes, counts = np.array([composer.nodes // 2, composer.nodes - 1]), np.array([6.0, 3.0])
    found = float(composer.profile(nodes, counts).delta(np.array([epsilon]))[0])
    bounds = []
    for pessimistic in (False, True):
        composed = None
        for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
            z = float(composer.edges[node])
            ends = np.concatenate([np.linspace(-9, z, 1500), np.linspace(-z, 9, 1500)])
            first, second = np.diff(ndtr(ends)), np.diff(ndtr(ends - composer.shift))
            first, second = (np.concatenate([side[:1499], side[1500:], [side[1499]]]) for side in (first, second))
            kept = (first > 1e-14) & (second > 1e-14)
            upper, lower = (dict(enumerate(np.log(side[kept]).tolist())) for side in (first, second))
            one = privacy_loss_distribution.from_two_probability_mass_functions(
                lower, upper, pessimistic_estimate=pessimistic, value_discretization_interval=2e-3, symmetric=False
            ).self_compose(int(count))
            composed = one if composed is None else composed.compose(one)
        assert composed is not None
        bounds.append(float(composed.get_delta_for_epsilon(epsilon)))
    assert bounds[0] * (1 - 1e-6) <= found <= bounds[1] * 1.02
    assert bounds[1] <= 1.1 * bounds[0]


def test_the_normal_distribution_function_is_as_accurate_as_assumed() -> None:
    generator = np.random.default_rng(1)
    with precision(200):
        for x in np.concatenate([-14 * generator.random(1500), 3 * generator.random(300)]).tolist():
            exact = phi(arb(x))
            assert abs(arb(float(ndtr(x))) / exact - 1) <= (8 + 4 * min(x, 0.0) ** 2) * 2.0**-53
            assert abs(arb(float(log_ndtr(x))) / exact.log() - 1) <= 2.0**-44
