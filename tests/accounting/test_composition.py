"""Theorem T: attacked with exact mechanisms, compared with quadrature and with another accountant."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Atom, Branch
from snugdp.numerics.rationals import rational
from tests.effort import often, repeated, sampled

from .atoms import add_profile, objective_perturbation, objective_perturbation_general, remove_profile
from .hockey import NODES, WEIGHTS, Array, from_loss, gaussian_bins, hockey_stick, pure_pair

ZERO = Fraction(0)


def _cost(
    mu: float = 0, pure: float = 0, failure: float = 0, variation: float = 0, atoms: tuple[Atom, ...] = ()
) -> Any:
    return {
        "mu_squared": rational(mu, "mu") ** 2,
        "pure": rational(pure, "pure"),
        "failure": rational(failure, "failure"),
        "variation": rational(variation, "variation"),
        "atoms": atoms,
    }


def _delta(cost: Any, epsilon: float) -> float:
    return composition.delta(**cost, epsilon=rational(epsilon, "epsilon"))


@pytest.mark.slow
def test_random_adaptive_compositions_never_leak_more() -> None:
    """A binned Gaussian, then a pure mechanism chosen by its outcome, then a mechanism that may fail."""
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(150):
        mu, pure, failure = rng.uniform(0.05, 2), rng.uniform(0.05, 1.5), rng.choice([0, 0.05])
        p, q = gaussian_bins(mu, np.sort(rng.normal(mu / 2, 1.5, 12)))
        joint_p, joint_q = [], []
        for a, b in zip(p, q, strict=True):
            inner_p, inner_q = pure_pair(rng, pure, 4)
            joint_p.append(a * np.append(inner_p * (1 - failure), failure))
            joint_q.append(b * np.append(inner_q, 0.0))  # the failing outcome never occurs on the neighbour
        cost = _cost(mu, pure, failure)
        for epsilon in (-1.0, 0.0, 0.3, 1.0, 2.0):
            exact = hockey_stick(np.concatenate(joint_p), np.concatenate(joint_q), epsilon)
            bound = _delta(cost, epsilon)
            assert exact <= bound + 1e-12
            closest = max(closest, exact / bound)
    assert closest > 0.95  # the attack comes close: it would see a smaller bound


def test_randomised_response_with_a_gaussian_is_exact() -> None:
    mu, pure, w = 0.7, 0.9, math.exp(0.9)
    for epsilon in (-1.5, -0.9, 0.0, 0.4, 0.9, 2.0, 4.0):
        exact = w / (1 + w) * from_loss(lambda t: mu * t + mu**2 / 2 + pure, epsilon)
        exact += 1 / (1 + w) * from_loss(lambda t: mu * t + mu**2 / 2 - pure, epsilon)
        assert _delta(_cost(mu, pure), epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
def test_an_approximate_part_is_a_pure_part_and_a_failure() -> None:
    """Lemma 4: any pair that is (e, f)-close in both orders, composed with a Gaussian chosen to hurt."""
    rng = np.random.default_rng(2)
    closest = 0.0
    for _ in range(300):
        p, q = (rng.dirichlet(np.ones(5) * rng.choice([0.3, 1, 3])) for _ in range(2))
        pure, mu = rng.uniform(0, 2), rng.uniform(0.05, 2)
        failure = max(hockey_stick(p, q, pure), hockey_stick(q, p, pure))
        a, b = gaussian_bins(mu, np.linspace(-4, 6, 60))
        for epsilon in (-0.5, 0.0, 0.7, 2.0):
            exact = hockey_stick(np.outer(p, a).ravel(), np.outer(q, b).ravel(), epsilon)
            bound = _delta(_cost(mu, pure, failure), epsilon)
            assert exact <= bound + 1e-12
            closest = max(closest, exact / bound)
    assert closest > 0.95


def test_domination_from_one_on_is_not_enough() -> None:
    """The pair (m, m') is dominated by (A, B) for all orders >= 1, and composition still breaks."""
    m, m2 = np.array([1.0, 0.0]), np.array([0.8, 0.2])
    a, b = np.array([0.2, 0.8]), np.array([0.0, 1.0])
    r, r2 = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    for alpha in np.linspace(1, 20, 200):
        assert hockey_stick(m, m2, math.log(alpha)) <= hockey_stick(a, b, math.log(alpha)) + 1e-15
    assert hockey_stick(m, m2, math.log(0.5)) > hockey_stick(a, b, math.log(0.5))
    true = hockey_stick(np.outer(m, r).ravel(), np.outer(m2, r2).ravel(), 0)
    claimed = hockey_stick(np.outer(a, r).ravel(), np.outer(b, r2).ravel(), 0)
    assert true == pytest.approx(0.6)
    assert claimed == pytest.approx(0.5)


def test_composition_agrees_with_a_loss_distribution() -> None:
    grid = 1e-3
    gaussians = pld.from_gaussian_mechanism(1 / 0.4, value_discretization_interval=grid)
    coin = pld.from_randomized_response(
        2 / (1 + math.exp(0.5)), 2, value_discretization_interval=grid
    )  # two buckets: keeps the true one with odds exp(0.5)
    both = gaussians.compose(gaussians).compose(coin)
    cost = _cost(math.sqrt(0.32), 0.5)
    cost["mu_squared"] = Fraction(32, 100)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        theirs = both.get_delta_for_epsilon(epsilon)  # rounds every loss up to its grid
        assert theirs / 1.01 <= _delta(cost, epsilon) <= theirs * (1 + 1e-9)
    noise = pld.from_laplace_mechanism(2.0, value_discretization_interval=grid).compose(gaussians).compose(gaussians)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert _delta(cost, epsilon) >= noise.get_delta_for_epsilon(epsilon) * (1 - 2e-3)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(0.01, 3), st.floats(0, 3), st.sampled_from([0, 1e-9, 1e-3]), st.floats(-3, 12))
def test_mixture_is_below_the_shift_and_above_the_gaussian(
    mu: float, pure: float, failure: float, epsilon: float
) -> None:
    value = _delta(_cost(mu, pure, failure), epsilon)
    shift = gaussian.delta(mu, rational(epsilon, "") - rational(pure, ""))
    assert value <= min(1, failure + shift) * (1 + 1e-12)
    assert value >= min(1, failure + gaussian.delta(mu, epsilon)) * (1 - 1e-12)


@repeated
@settings(max_examples=often(20, 60), deadline=None)
@given(st.floats(0, 3), st.floats(0, 3), st.sampled_from([0, 1e-9]), st.floats(-12, -0.3).map(lambda x: 10.0**x))
def test_epsilon_is_the_smallest(mu: float, pure: float, failure: float, delta: float) -> None:
    cost = _cost(mu, pure, failure)
    value = composition.epsilon(**cost, delta=rational(delta, "delta"))
    if math.isinf(value):
        assert delta <= failure
        return
    for reading in (Fraction(value), Fraction(repr(value))):
        assert composition.delta(**cost, epsilon=reading) <= delta * (1 + 1e-15)
    if value > 0:
        assert _delta(cost, value * (1 - 1e-9)) > delta


def test_epsilon_without_a_gaussian_part() -> None:
    assert composition.epsilon(**_cost(pure=1), delta=ZERO) == 1.0
    assert composition.epsilon(**_cost(pure=1, failure=1e-6), delta=Fraction(1, 10**6)) == 1.0
    assert composition.epsilon(**_cost(), delta=ZERO) == 0.0
    assert composition.epsilon(**_cost(mu=1), delta=ZERO) == math.inf
    assert composition.epsilon(**_cost(mu=1, failure=1e-6), delta=Fraction(1, 10**6)) == math.inf
    assert composition.epsilon(**_cost(failure=1e-5), delta=Fraction(1, 10**6)) == math.inf
    assert composition.epsilon(**_cost(pure=1, variation=1e-9), delta=ZERO) == math.inf
    capped = Atom(add=(Branch(ZERO, ZERO),), remove=(Branch(ZERO, Fraction(1, 2)),))
    assert composition.epsilon(**_cost(pure=1, atoms=(capped,)), delta=ZERO) == 1.5


@repeated
@settings(max_examples=often(15, 40), deadline=None)
@given(st.floats(0.05, 2), st.floats(0, 1), st.floats(-12, -5).map(lambda x: 10.0**x))
def test_variation_falls_and_rises_and_the_answer_is_valid(mu: float, pure: float, variation: float) -> None:
    cost, goal = _cost(mu, pure, 1e-9, variation), Fraction(1, 10**5)
    value = composition.epsilon(**cost, delta=goal)
    grid = np.linspace(0, 25, often(75, 300))
    curve = np.array([_delta(cost, float(x)) for x in grid])
    if math.isinf(value):
        assert curve.min() > 1e-5 * (1 - 1e-6)
        return
    for reading in (Fraction(value), Fraction(repr(value))):
        assert Fraction(composition.delta(**cost, epsilon=reading)) <= goal * (1 + Fraction(1, 10**15))
    assert (curve[grid < value * (1 - 1e-9)] > 1e-5).all()


def test_variation_that_cannot_be_paid_is_infinite() -> None:
    assert composition.epsilon(**_cost(1, variation=1e-6), delta=Fraction(1, 10**6)) == math.inf
    assert composition.epsilon(**_cost(0.1, variation=0.9e-6), delta=Fraction(2, 10**6)) == math.inf


def _loss(atom: str, m: float, limit: float) -> Array:
    if atom == "add":
        return m * np.abs(NODES) + m**2 / 2
    if atom == "remove":
        return np.maximum(m * NODES + m**2 / 2, limit)
    return limit + np.maximum(m * NODES + m**2 / 2, 0)


def _with_gaussian(loss: Array, mu: float, epsilon: float) -> float:
    """E over the atom's loss of delta_G(mu; epsilon - loss), by quadrature."""
    from scipy.stats import norm

    x = epsilon - loss
    if mu == 0:
        inner = np.maximum(0, -np.expm1(x))
    else:
        inner = norm.cdf(mu / 2 - x / mu) - np.exp(x) * norm.cdf(-mu / 2 - x / mu)
    return float((WEIGHTS * inner).sum())


@sampled(4)
@pytest.mark.parametrize("mu", [0.0, 0.05, 0.4])
@pytest.mark.parametrize("m", [0.1, 0.5, 1.5])
def test_objective_perturbation_by_quadrature(mu: float, m: float) -> None:
    limit, beta = 0.3, 0.2
    special, general = objective_perturbation(m, limit), objective_perturbation_general(m, beta)
    for epsilon in (0.35, 1.0, 2.5):
        add = _with_gaussian(_loss("add", m, 0), mu, epsilon)
        remove = _with_gaussian(_loss("remove", m, limit), mu, epsilon)
        any_loss = _with_gaussian(_loss("any", m, beta), mu, epsilon)
        first, second = (_delta(_cost(mu, atoms=(atom,)), epsilon) for atom in (special, general))
        assert max(add, remove) <= first * (1 + 1e-8) + 1e-13
        assert max(add, any_loss) <= second * (1 + 1e-8) + 1e-13
        if mu == 0 and epsilon >= m**2 / 2:  # a single atom alone is exact here
            assert first == pytest.approx(max(add, remove), rel=1e-6, abs=1e-12)
            assert first == pytest.approx(add_profile(m, epsilon), rel=1e-9, abs=1e-15)


@repeated
@settings(max_examples=often(13, 40), deadline=None)
@given(st.floats(0.02, 2), st.floats(0, 2), st.floats(-3, 5))
def test_profiles_by_quadrature(m: float, limit: float, epsilon: float) -> None:
    """Of the reference that attacks on objective perturbation compare with."""
    for kind, found in (
        ("add", add_profile(m, epsilon)),
        ("remove", remove_profile(m, limit, 0, epsilon)),
        ("any", remove_profile(m, 0, limit, epsilon)),
    ):
        exact = float((WEIGHTS * np.maximum(0, -np.expm1(epsilon - _loss(kind, m, limit)))).sum())
        assert found == pytest.approx(exact, rel=2e-6, abs=1e-10)


def test_directions_are_composed_before_the_maximum() -> None:
    up = Atom(add=(Branch(ZERO, Fraction(1)),), remove=(Branch(ZERO, ZERO),))
    down = Atom(add=(Branch(ZERO, ZERO),), remove=(Branch(ZERO, Fraction(1)),))
    assert composition.epsilon(**_cost(atoms=(up, down)), delta=ZERO) == 1.0
    assert composition.epsilon(**_cost(atoms=(up, up)), delta=ZERO) == 2.0


def test_equal_atoms_are_counted_together() -> None:
    atoms = tuple(objective_perturbation("0.05", "0.001") for _ in range(100))
    assert composition.epsilon(**_cost(0.1, atoms=atoms[:20]), delta=Fraction(1, 10**6)) < 30
    assert _delta(_cost(0.1, atoms=atoms), 1.0) == 1.0
    pairwise = _delta(_cost(0.1, atoms=atoms[:3]), 2.0)
    by_hand = 8 * gaussian.delta(math.sqrt(0.01 + 3 * 0.0025), 2)
    assert pairwise == pytest.approx(by_hand, rel=1e-12)


def test_too_many_distinct_atoms_are_refused() -> None:
    atoms = tuple(objective_perturbation(Fraction(1, 10 + k), Fraction(1, 3 + 2**k)) for k in range(14))
    with pytest.raises(ValueError, match="more than 4096 distinct combinations"):
        _delta(_cost(atoms=atoms), 1.0)


@pytest.mark.slow
def test_many_levels_beside_a_gaussian_part_are_put_together_safely() -> None:
    """Six different atoms of forty levels: more than 4096 combinations, and never less than the exact sum."""
    whole = Branch(Fraction(1, 100), ZERO)

    def atom(place: int) -> Atom:
        levels = tuple(Branch(ZERO, Fraction(i, 40 + place), Fraction(1, 10**4)) for i in range(1, 41))
        return Atom((whole,), (whole, *levels))

    atoms = tuple(atom(place) for place in range(3))
    assert composition.MOST_COMBINATIONS < 41**3
    every = itertools.product(*(a.remove for a in atoms))
    few = [chosen for chosen in every if sum(not b.mu_squared for b in chosen) <= 1]
    for epsilon in (0.3, 1.0, 2.0):
        exact = sum(
            math.prod(float(b.weight) for b in chosen)
            * gaussian.delta(
                math.sqrt(float(sum(b.mu_squared for b in chosen))), epsilon - float(sum(b.shift for b in chosen))
            )
            for chosen in few
        )
        found = _delta(_cost(atoms=atoms), epsilon)
        assert exact <= found * (1 + 1e-9)
        assert found <= 1.2 * exact + 1e-5


def test_bad_parts_are_refused() -> None:
    for name in ("mu_squared", "pure", "failure", "variation"):
        cost = _cost()
        cost[name] = Fraction(-1)
        with pytest.raises(ValueError, match=f"{name} must be at least 0"):
            _delta(cost, 1.0)
    with pytest.raises(ValueError, match="delta must be at least 0 and below 1"):
        composition.epsilon(**_cost(), delta=Fraction(1))
    with pytest.raises(ValueError, match="at least one branch"):
        Atom(add=(), remove=())
    with pytest.raises(ValueError, match="mu_squared and shift of a branch"):
        Branch(Fraction(-1), ZERO)
    for weight in (ZERO, Fraction(-1, 2), Fraction(3, 2)):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            Branch(Fraction(1), ZERO, weight)


def test_weights_that_leave_something_out_are_no_atom() -> None:
    """Less than 1 would earn credit: eight such atoms made room for epsilon 3.9 in a budget of 1."""
    rare = (Branch(Fraction(0), Fraction(0), Fraction(1, 10**6)),)
    with pytest.raises(ValueError, match="at least 1"):
        Atom(rare, (Branch(Fraction(0), Fraction(0)),))


def test_a_level_beside_a_gaussian_release_may_be_one_atom() -> None:
    """Its event is independent of the Gaussian loss: with the release in the atom or beside it, in any company."""
    levels = [(Fraction(1, 4), Fraction(1, 2)), (Fraction(1), Fraction(1, 3)), (Fraction(3), Fraction(1, 6))]
    square, company = Fraction(1, 5), Atom((Branch(Fraction(1, 3), Fraction(1, 7)),) * 2, (Branch(ZERO, Fraction(1)),))
    alone = Atom(*[tuple(Branch(ZERO, shift, weight) for shift, weight in levels)] * 2)
    together = Atom(*[tuple(Branch(square, shift, weight) for shift, weight in levels)] * 2)
    for times in (1, 2):
        for others in ((), (company,)):
            for epsilon in (Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(2), Fraction(5)):
                one = composition.delta(mu_squared=times * square, atoms=(alone,) * times + others, epsilon=epsilon)
                other = composition.delta(mu_squared=ZERO, atoms=(together,) * times + others, epsilon=epsilon)
                assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.slow
def test_one_of_several_costs_no_less_than_each() -> None:
    """Also where it is composed with itself and with others, at every epsilon and in each direction."""
    rng = np.random.default_rng(5)

    def branches() -> tuple[Branch, ...]:
        sizes = (Fraction(float(rng.random())) for _ in range(3))
        return tuple(Branch(size, Fraction(float(rng.random()))) for size in sizes)

    for _ in range(20):
        atoms = [Atom(branches(), branches()) for _ in range(3)]
        whole = composition.either(*atoms)
        for epsilon in (Fraction(-1), Fraction(0), Fraction(1), Fraction(4)):
            company: dict[str, Any] = {"mu_squared": Fraction(1, 3), "epsilon": epsilon}
            most = composition.delta(atoms=(whole, whole), **company)
            pairs = itertools.product(atoms, atoms)
            assert max(composition.delta(atoms=pair, **company) for pair in pairs) <= most
            single = [composition.delta(atoms=(atom,), **company) for atom in atoms]
            assert composition.delta(atoms=(whole,), **company) <= min(1.0, sum(single)) * (1 + 1e-12)
