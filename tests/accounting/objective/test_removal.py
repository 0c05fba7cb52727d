"""The sharp bound on removals against exact laws, its levels against the definition, and what happens beyond it."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from scipy.special import ndtri

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.objective import linear, removal
from snugdp.accounting.objective.run import RunCost, within
from snugdp.numerics import balls
from tests.accounting.atoms import composed, exact
from tests.accounting.objective.perturbed import CLASS_T, LEEWAY, Array, Law, beside, deltas, nobody, random_pair
from tests.effort import often, repeated, sampled

NONE = Fraction(0)
GOALS = [(0.05, 1e-6), (0.1, 1e-9), (1.0, 1e-9), (1.0, 1e-3), (4.0, 1e-6), (10.0, 1e-2)]
TARGETS = (0.0, 0.05, 0.5, 0.8, 0.95, 1.1, 1.25, 1.4, 1.6, 2.0, 3.0)  # of where the tilt that matters moves the point
SHARE = 0.2  # of what the budget affords: the mu of a companion


@cache
def limits(epsilon: float, delta: float, share: float = 0.0) -> tuple[float, float, float]:
    """The m and the kappa that the budget affords beside a Gaussian part, and that part."""
    mu = share * gaussian.mu(epsilon, delta)
    m = linear.calibrate(epsilon, delta, mu=mu)
    kappa = removal.largest_kappa(exact(epsilon), exact(delta), Fraction(m) ** 2, exact(mu) ** 2)
    assert kappa > 0
    return m, float(kappa), mu


def rows_that_go(epsilon: float, m: float, kappa: float, kind: str = "logcosh") -> list[tuple[Law, Law]]:
    """Single rows against nobody, with targets near and far."""
    empty, reach = nobody(kind, m, kappa), kappa * epsilon / m**2
    return [(empty.more(1.0, part * reach), empty) for part in TARGETS]


def worst(epsilon: float, m: float, kappa: float, kind: str = "logcosh") -> float:
    """The largest delta over single rows that go."""
    return max(deltas(p, q, [epsilon], 300)[0] for p, q in rows_that_go(epsilon, m, kappa, kind))


def removal_only(m_squared: Fraction, kappa: Fraction) -> Atom:
    """The atom without its other direction."""
    return Atom((Branch(NONE, NONE),), removal.sharp_atom(m_squared, kappa).remove)


def largest_loss(t: float, m: float, kappa: float) -> arb:
    """Lbar(t), in 200 bits: thirds of the interval in which a concave function is largest. Never above the truth."""
    with balls.precision(200):
        drift, low, high = arb(m) * arb(t), arb(0), arb(1)
        values = [arb(0)]

        def g(s: arb) -> arb:
            return drift * s.sqrt() + arb(m) ** 2 * s / 2 + (1 + (1 - s) * arb(kappa)).log()

        for _ in range(60):
            a, b = ((2 * low + high) / 3).mid(), ((low + 2 * high) / 3).mid()
            values = [g(a), g(b)]
            low, high = (a, high) if values[0] <= values[1] else (low, b)
        return max(*values, g(arb(0)), g(arb(1)), key=lambda ball: ball.mid()).lower()


def floats_of_loss(t: Array, m: float, kappa: float) -> Array:
    """Lbar in floats, from a grid of s that is fine near both ends."""
    s = (1 - np.cos(np.linspace(0, math.pi, 1201))) / 2
    found: Array = np.max(np.multiply.outer(m * t, np.sqrt(s)) + (m * m * s / 2 + np.log1p((1 - s) * kappa)), axis=1)
    return found


# --- the guarantee ---


@sampled(2)
@repeated
@pytest.mark.parametrize("kind", CLASS_T)
def test_random_neighbours_never_exceed_the_claim(kind: str) -> None:
    rng = np.random.default_rng(100 + len(kind))
    for epsilon, delta in GOALS:
        m, kappa, _ = limits(epsilon, delta)
        for _ in range(often(2, 7)):
            one, other = random_pair(rng, kind, m, kappa)
            for p, q in ((other, one), (one, other)):
                assert deltas(p, q, [epsilon], 150)[0] <= delta * LEEWAY


@sampled(2)
@repeated
@pytest.mark.parametrize("kind", CLASS_T)
def test_random_neighbours_stay_below_the_whole_curve(kind: str) -> None:
    """At every epsilon, also below zero, the removal alone: without the help of the other direction."""
    rng = np.random.default_rng(200 + len(kind))
    for _ in range(often(2, 5)):
        m, kappa = float(rng.uniform(0.03, 2.5)), float(np.exp(rng.uniform(-4, 2)))
        atom = removal_only(Fraction(m) ** 2, Fraction(kappa))
        one, other = random_pair(rng, kind, m, kappa)
        least = math.log1p(kappa)
        levels = [-1.0, 0.0, *(least * rng.uniform(0, 2, 2)).tolist(), *(least + m * rng.uniform(0, 4, 2)).tolist()]
        for level, found in zip(levels, deltas(other, one, levels, 150), strict=True):
            assert found <= composed(level, (atom,)) + 1e-12


@pytest.mark.parametrize("kind", CLASS_T)
@pytest.mark.parametrize(("epsilon", "delta"), GOALS)
def test_the_worst_rows_never_exceed_the_claim(kind: str, epsilon: float, delta: float) -> None:
    m, kappa, _ = limits(epsilon, delta)
    assert 0.3 * delta < worst(epsilon, m, kappa, kind) <= delta * LEEWAY


def test_many_other_rows_never_exceed_the_claim() -> None:
    """Rows that hold the point while one goes: they keep its slope, and take from its curvature."""
    epsilon, delta = 4.0, 1e-6
    m, kappa, _ = limits(epsilon, delta)
    for copies, where, target in ((1, 0.0, 27.0), (3, -8.0, 30.0), (9, 20.0, 24.0), (40, 0.0, 4.0), (40, 1.0, 0.0)):
        small = Law([1.0] * copies, [where] * copies, "logcosh", 1.0, 1 / kappa, 1 / m)
        big = small.more(1.0, target)
        for p, q in ((big, small), (small, big)):
            assert deltas(p, q, [epsilon], 300)[0] <= delta * LEEWAY


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (0.3, 1e-6), (1.0, 1e-9), (1.0, 1e-3)])
def test_a_ridge_below_the_sharp_limit_breaks_the_claim(epsilon: float, delta: float) -> None:
    m, kappa, _ = limits(epsilon, delta)
    assert worst(epsilon, m, 1.5 * kappa) > 1.3 * delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-9), (4.0, 1e-6), (10.0, 1e-2)])
def test_less_noise_breaks_the_claim(epsilon: float, delta: float) -> None:
    m, kappa, _ = limits(epsilon, delta)
    assert worst(epsilon, m / 0.95, kappa) > 1.05 * delta


@sampled(8)
@repeated
@pytest.mark.parametrize("kind", CLASS_T)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (4.0, 1e-3)])
def test_beside_a_gaussian_part(kind: str, epsilon: float, delta: float) -> None:
    m, kappa, mu = limits(epsilon, delta, SHARE)
    pairs = rows_that_go(epsilon, m, kappa, kind)
    rng = np.random.default_rng(300 + len(kind))
    pairs += [random_pair(rng, kind, m, kappa)[::-1] for _ in range(often(2, 6))]
    found = [beside(mu, p, q, epsilon) for p, q in pairs]
    assert 0.3 * delta < max(found) <= delta * 1.0001
    assert max(beside(mu, q, p, epsilon) for p, q in pairs) <= delta * 1.0001


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6)])
def test_beside_a_gaussian_part_a_smaller_ridge_breaks_the_claim(epsilon: float, delta: float) -> None:
    m, kappa, mu = limits(epsilon, delta, SHARE)
    assert max(beside(mu, p, q, epsilon) for p, q in rows_that_go(epsilon, m, 1.5 * kappa)) > 1.5 * delta


# --- the levels ---


@sampled(4)
@pytest.mark.parametrize(
    ("m", "kappa"), [(0.03, 0.05), (0.22, 0.8), (0.22, 0.001), (0.22, 40.0), (2.2, 70.0), (9.0, 3.0)]
)
def test_levels_cover_the_loss(m: float, kappa: float) -> None:
    """Up to every end, read off the weights, the loss is at most its level; and the levels are not far above it."""
    levels = removal.sharp_atom(Fraction(m) ** 2, Fraction(kappa)).remove
    shifts = [branch.shift for branch in levels]
    step = Fraction(2) ** math.floor(math.log2(m / 32))
    assert all(shift % step == 0 for shift in shifts)
    assert all(a < b for a, b in pairwise(shifts))
    assert all(not branch.mu_squared for branch in levels)
    beyond, ends = Fraction(1), []
    for branch in levels:
        beyond -= branch.weight
        ends.append(-float(ndtri(float(beyond))) if beyond > 0 else math.inf)
    assert -removal.TAIL <= beyond <= 0  # what lies beyond the last point counts for the last level
    assert ends[-2] < removal.MAX_DEVIATE < ends[-1]
    assert all(a < b for a, b in pairwise(ends))
    with balls.precision(200):
        for shift, end in [*list(zip(shifts, ends, strict=True))[::12], (shifts[-1], float(removal.MAX_DEVIATE))]:
            assert not largest_loss(max(end, 0.0), m, kappa) > balls.ball(shift)
        for shift, end in list(zip(shifts, ends, strict=True))[:-1:12]:
            assert largest_loss(end + 0.05, m, kappa) > balls.ball(shift)


def test_the_tail_is_beyond_the_farthest() -> None:
    with balls.precision(200):
        beyond = gaussian.cdf(arb(-removal.MAX_DEVIATE))
        assert beyond < balls.ball(removal.TAIL) < 2 * beyond
    assert RunCost(Fraction(1, 16), Fraction(1, 2), "class_t_sharp").failure == removal.TAIL
    assert RunCost(Fraction(1, 16), Fraction(1, 2), "class_t").failure == 0


@sampled(2)
@pytest.mark.parametrize("kappa", [0.3, 2.0])
def test_one_atom_against_quadrature(kappa: float) -> None:
    """The levels cost little beside the maximum itself."""
    m, t = 0.4, np.linspace(0, 10, 4001)
    weights = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    losses = floats_of_loss(t, m, kappa)
    weights[0] = weights[0] / 2 + 0.5
    atom = removal_only(Fraction(m) ** 2, Fraction(kappa))
    for level in (-0.5, 0.1, 1.2, 2.0):
        found = float(weights @ np.maximum(-np.expm1(np.minimum(level - losses, 0.0)), 0.0))
        assert found * (1 - 1e-3) <= composed(level, (atom,)) <= found * 1.3


def test_two_atoms_against_quadrature() -> None:
    m, kappa, t = 1.0, 1000.0, np.linspace(0, 9, 901)  # few levels: they are multiplied out
    weights = np.exp(-(t**2) / 2) / math.sqrt(2 * math.pi) * (t[1] - t[0])
    weights[0] = weights[0] / 2 + 0.5
    losses = floats_of_loss(t, m, kappa)
    atom = removal_only(Fraction(m) ** 2, Fraction(kappa))
    sums = np.add.outer(losses, losses)
    level = 15.0
    found = float(weights @ np.maximum(-np.expm1(np.minimum(level - sums, 0.0)), 0.0) @ weights)
    assert found * 0.995 <= composed(level, (atom, atom)) <= found * 1.25


@pytest.mark.slow
def test_delta_falls_and_epsilon_inverts_it() -> None:
    atoms = (removal.sharp_atom(Fraction(1, 20), Fraction(4, 5)),)
    curve = [composed(level, atoms, Fraction(1, 1000)) for level in (-0.5, 0.0, 0.4, 0.6, 0.8, 1.0, 1.5)]
    assert all(a > b for a, b in pairwise(curve))
    found = composition.epsilon(
        mu_squared=Fraction(1, 1000), pure=NONE, failure=removal.TAIL, variation=NONE, atoms=atoms,
        delta=Fraction(1, 10**5),
    )  # fmt: skip
    assert composed(found, atoms, Fraction(1, 1000)) <= 1e-5 < composed(found - 1e-6, atoms, Fraction(1, 1000))


@pytest.mark.parametrize(("m", "kappa"), [(1.4, 48.99999999999967), (0.26415245942781485, 0.036149452439372)])
def test_levels_where_the_loss_is_flat_at_no_step(m: float, kappa: float) -> None:
    """m^2 (1 + kappa) = 2 kappa but for rounding: at t = 0 slope and curvature at 0 are 0, and Newton divides them."""
    with np.errstate(all="raise"):
        branches = removal.sharp_atom(Fraction(m) ** 2, Fraction(kappa)).remove
    assert largest_loss(0.0, m, kappa) <= balls.ball(branches[0].shift)
    assert branches[0].shift < 1.3 * math.log1p(kappa)


# --- the limit ---


@sampled(2)
@pytest.mark.parametrize(("epsilon", "delta"), GOALS)
def test_the_limit_is_beyond_the_plain_one_and_proved(epsilon: float, delta: float) -> None:
    m, kappa, _ = limits(epsilon, delta)
    assert 1.1 * min(epsilon, epsilon / 2 + m**2 / 4) < kappa
    for sharp in (True, False):
        run = RunCost(Fraction(m) ** 2, Fraction(kappa), "class_t_sharp" if sharp else "class_t")
        assert within(exact(epsilon), exact(delta), [run]) is sharp
    more = RunCost(Fraction(m) ** 2, Fraction(kappa) * Fraction(103, 100), "class_t_sharp")
    assert not within(exact(epsilon), exact(delta), [more])


def test_no_limit_where_nothing_fits() -> None:
    goal = Fraction(1), Fraction(1, 10**6)
    assert removal.largest_kappa(*goal, Fraction(9, 100), NONE) == 0  # too little noise for any ridge
    assert removal.largest_kappa(*goal, Fraction(1, 25), Fraction(1)) == 0  # the companion alone is too much
    assert removal.largest_kappa(Fraction(2000), Fraction(1, 10), Fraction(17**2), NONE) == 0  # out of range
    assert removal.largest_kappa(Fraction(1), removal.TAIL / 2, Fraction(1, 10**4), NONE) == 0  # less than the tail
