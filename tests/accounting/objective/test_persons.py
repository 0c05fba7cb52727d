"""Persons with several rows against exact laws, the bounds on a removal against a solver, and what calibrations say."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from snugdp.accounting import composition, gaussian
from snugdp.accounting.composition import Branch
from snugdp.accounting.objective import glm
from snugdp.accounting.objective.growth import Family, Growth, bound_along, removal_deltas
from snugdp.accounting.objective.persons import TAIL, PersonLoss
from snugdp.accounting.objective.run import RunCost, within
from tests.accounting.atoms import gaussian_delta
from tests.accounting.objective.person_attack import attacks
from tests.accounting.objective.person_laws import Floats, Person, allowed, hockey, in_the_plane, on_a_line
from tests.effort import often, repeated, sampled

FAMILIES: dict[Family, bool] = {"class_t": False, "logistic": True, "linear": True, "bounded": False}
LEEWAY = 2e-6  # of sums over squares in the plane


@cache
def loss_of(family: Family, m: float, kappa: float, constant_sign: bool | None = None) -> PersonLoss:
    sign = FAMILIES[family] if constant_sign is None else constant_sign
    return PersonLoss(family, sign, Fraction(m) ** 2, Fraction(kappa), 128)


def losses_around(random: np.random.Generator, loss: PersonLoss) -> Floats:
    """Of either sign, up to beyond the critical one."""
    m, most = math.sqrt(loss.m_squared), float(loss.critical_loss) + 2 * math.sqrt(loss.m_squared)
    return np.concatenate([random.uniform(-1, 0, 3), random.uniform(0, 1.3, 6), [0.0, m * m / most / 4]]) * most


def assert_within(loss: PersonLoss, with_person: Floats, without: Floats, losses: Floats, leeway: float) -> None:
    for branches, pair in ((loss.atom.remove, (with_person, without)), (loss.atom.add, (without, with_person))):
        assert np.all(hockey(*pair, losses) <= allowed(branches, losses) * (1 + 1e-9) + leeway)


@sampled(6)
@repeated
@pytest.mark.parametrize("family", FAMILIES)
def test_random_persons_lose_no_more_than_their_atom(family: Family) -> None:
    """Two to five rows, on a line beside any other rows, and in the plane; both directions, losses of either sign."""
    random = np.random.default_rng(13)
    for _ in range(often(1, 3, 12)):
        m = math.exp(random.uniform(math.log(0.05), math.log(1.5)))
        loss = loss_of(family, m, m * math.exp(random.uniform(math.log(0.3), math.log(6.0))))
        kappa = float(loss.kappa)
        for each in range(often(8, 16, 30)):
            person = Person.random(random, plane=each % 4 == 0)
            losses = losses_around(random, loss)
            if each % 4 == 0:
                assert_within(loss, *in_the_plane(family, person, m, kappa), losses, LEEWAY)
                continue
            free = (random.random(80) < random.choice([1.0, 0.6, 0.2])).astype(float).repeat(100)
            assert_within(loss, *on_a_line(family, person, m, kappa, free), losses, 1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_worst_persons_that_a_search_finds_lose_no_more_than_their_atom(family: Family) -> None:
    """In all tiers a few of the pairs of the next test, with one short ascent each."""
    random = np.random.default_rng(31)
    found = list(attacks(family, loss_of, "line"))[7::11]
    assert max(attack.worst(random, (1.0,)) for attack in found) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("where", ["line", "plane"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_worst_pair_of_many_tells_more_than_is_paid(family: Family, where: str) -> None:
    """More than 1,000 pairs in all, each the end of an ascent from a start of its own; bounds are nearly reached."""
    random, found = np.random.default_rng(77), list(attacks(family, loss_of, where))
    worst = [attack.worst(random) for attack in found for _ in range({"line": 3, "plane": 1}[where])]
    assert len(worst) >= {"line": 180, "plane": 40}[where]
    assert max(worst) <= 1
    assert max(worst) > (0.9 if family == "bounded" else 0.99)
    print(f"{family}, {where}: {len(worst)} pairs, closest {max(worst):.5f}")


@sampled(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("m", "kappa"), [(0.2, 0.6), (1.0, 0.7)])
def test_parallel_rows_whose_slope_is_largest_reach_the_bound(family: Family, m: float, kappa: float) -> None:
    loss = loss_of(family, m, kappa)
    person = Person(np.array([0.5, 0.3, 0.2]), np.ones(3), np.zeros(3), np.array([30.0, 40.0, 50.0]) * (1 + kappa / m))
    with_person, without = on_a_line(family, person, m, kappa, np.ones(8000))
    losses = np.array([0.2, 0.5, 1.0, 2.0, 3.0]) + float(loss.critical_loss)
    assert_within(loss, with_person, without, losses, 1e-13)
    reached = hockey(with_person, without, losses)
    assert reached[0] == pytest.approx(gaussian_delta(m, losses[0]), rel=1e-4)
    if family != "bounded":
        assert np.all(allowed(loss.atom.remove, losses) <= [1.01 * gaussian_delta(m, e) + 1e-43 for e in losses])


@sampled(3)
@pytest.mark.parametrize(("m", "kappa"), [(0.1, 0.5), (0.7, 0.9), (1.4, 3.0)])
def test_a_row_at_its_knee_reaches_twice_the_gaussian_bound(m: float, kappa: float) -> None:
    """Adding rows that no ridge holds: log-cosh so steep that its slope is the sign of the noise."""
    loss = loss_of("class_t", m, kappa)
    person = Person(np.array([0.5, 0.5]), np.ones(2), np.zeros(2), np.zeros(2))
    with_person, without = on_a_line("class_t", person, m, 4000.0, np.ones(8000))
    losses = np.array([m**2 / 2, 0.5, 1.0]) + m
    found = hockey(without, with_person, losses) / allowed(loss.atom.add, losses)
    assert np.all(found <= 1 + 1e-9)
    assert found[0] > 0.98


def solved(growth: Growth, loss: float, steps: int = 200) -> float:
    """The supremum over all solutions of c' = -J/phi(c), by Runge and Kutta's method: none of the library's paths."""

    def speed(c: Floats) -> Floats:
        return np.minimum(growth.speeds(np.maximum(c, -4.0)), 400.0)

    middle, width, h = 5.0, 7.0, 1 / steps
    for _ in range(4):
        starts = np.linspace(middle - width, middle + width, 57)
        c = starts
        for _ in range(steps):
            first = speed(c)
            second = speed(c - h / 2 * first)
            third = speed(c - h / 2 * second)
            c = c - h / 6 * (first + 2 * second + 2 * third + speed(c - h * third))
        lost = ndtr(-c) - math.exp(loss) * ndtr(-starts)
        middle, width = starts[int(lost.argmax())], width / 16
    return float(lost.max())


@pytest.mark.slow
@sampled(6)
@pytest.mark.parametrize(
    ("family", "m", "kappa", "loss"),
    [
        ("class_t", 0.237, 0.9, 1.068),
        ("class_t", 0.6, 1.7, 2.5),
        ("logistic", 0.124, 0.357, 0.372),
        ("linear", 0.3, 0.8, 0.82),
        ("bounded", 0.3, 0.7, 0.72),
    ],
)
def test_the_bound_on_a_removal_is_that_of_the_worst_path(family: Family, m: float, kappa: float, loss: float) -> None:
    growth = Growth(family, Fraction(m) ** 2, Fraction(kappa))
    (delta,) = removal_deltas(growth, [Fraction(loss)], int(256 * (1 + loss)))
    truth, found = solved(growth, loss), float(delta.upper())
    assert truth * (1 - 1e-8) <= found <= truth * (1 + 1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_any_path_gives_a_bound(family: Family) -> None:
    """Tangents along a path that is far from the worst one: looser, never lower."""
    growth = Growth(family, Fraction(1, 16), Fraction(1, 2))
    random = np.random.default_rng(5)
    for _ in range(5):
        bound = bound_along(growth, random.uniform(0, 8, 16))
        (sharp,) = removal_deltas(growth, [bound.loss], 64)
        assert float(sharp.mid()) <= float(bound.delta.mid()) * (1 + 1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_growth_is_the_integral_of_the_largest_rate(family: Family) -> None:
    growth = Growth(family, Fraction(1, 9), Fraction(2, 5))
    m, kappa, grid = 1 / 3, 0.4, np.linspace(0.0, 1.0, 4001)
    determinant = {"class_t": 1 - grid**2, "logistic": grid * (1 - grid), "linear": 1 - grid, "bounded": grid**0}[
        family
    ]
    deviates = np.linspace(-3.0, 4.0, 15)
    pushed = deviates[:, None] if family == "logistic" else np.maximum(deviates, 0.0)[:, None]
    largest = (m * grid * pushed + kappa * determinant).max(axis=1)
    np.testing.assert_allclose(growth.rates(deviates), largest, rtol=1e-6, atol=1e-8)
    ends = np.linspace(-3.0, 12.0, 15001)
    density = np.exp(-(ends**2) / 2) / math.sqrt(2 * math.pi)
    total = float(np.sum((growth.rates(ends) * density)[1:] + (growth.rates(ends) * density)[:-1]) * 0.0005)
    assert float(growth.speeds(np.array([-3.0]))[0] * density[0]) == pytest.approx(total, rel=1e-6)


def test_an_atom_is_close_to_the_integral_of_its_curve() -> None:
    """Beside a Gaussian part, where chords and levels could cost most: 0.2 %."""
    loss = loss_of("class_t", 0.206, 0.55)
    z = np.linspace(-8.0, 8.0, 321)
    losses = [Fraction(1 - 0.062 * float(t) - 0.062**2 / 2) for t in z]
    deltas = np.array([float(delta.mid()) for delta in removal_deltas(loss.growth, losses, 32)])
    integral = float(np.sum(deltas * np.exp(-(z**2) / 2)) * (z[1] - z[0]) / math.sqrt(2 * math.pi))
    remove = composition.Atom(loss.atom.remove, loss.atom.remove)
    found = composition.delta(mu_squared=Fraction("0.062") ** 2, atoms=(remove,), epsilon=Fraction(1))
    assert integral * (1 - 1e-3) < found < integral * 1.002


@sampled(2)
@pytest.mark.parametrize("kind", ["logistic", "class_c"])
@pytest.mark.parametrize("ratio", [0.5, 1.5, 3.0])
def test_a_gaussian_cost_of_persons_holds_for_exact_laws(kind: str, ratio: float) -> None:
    m, random = 0.4, np.random.default_rng(3)
    run = RunCost(Fraction(m) ** 2, Fraction(m * ratio), kind, unit="person")  # type: ignore[arg-type]
    mu = math.sqrt(run.gaussian_squared)
    assert m <= mu <= m * max(1.0, ratio)
    for _ in range(10):
        person = Person.random(random, plane=False)
        laws = on_a_line("logistic" if kind == "logistic" else "linear", person, m, m * ratio, np.ones(8000))
        losses = random.uniform(-2.0, 2.0, 12)
        most = np.array([gaussian_delta(mu, e) for e in losses]) * (1 + 1e-9) + 1e-13
        assert np.all(hockey(*laws, losses) <= most)
        assert np.all(hockey(*laws[::-1], losses) <= most)


MORE_KINDS = ("class_t", "class_c", "tamed_poisson", "sign_changing", "constant_sign")
SLOW_KINDS = [pytest.param(kind, marks=pytest.mark.slow) for kind in MORE_KINDS]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["logistic", *SLOW_KINDS])
def test_a_calibrated_run_of_persons_fits(kind: str) -> None:
    epsilon, delta, mu_squared = Fraction(1), Fraction(1, 10**6), Fraction(1, 400)
    kappa = Fraction(1, 20)
    m = glm.calibrate(epsilon, delta, kind, kappa=kappa, mu="1/20", unit="person")  # type: ignore[arg-type]
    assert m > 0.1
    run = RunCost(Fraction(m) ** 2, kappa, kind, unit="person")  # type: ignore[arg-type]
    assert within(epsilon, delta, [run], mu_squared)
    more = glm.largest_kappa(epsilon, delta, Fraction(m) ** 2 * Fraction(9, 10), kind, mu_squared, unit="person")
    assert more > kappa
    again = RunCost(Fraction(m) ** 2 * Fraction(9, 10), more, kind, unit="person")  # type: ignore[arg-type]
    assert within(epsilon, delta, [again], mu_squared)


def test_alone_a_person_costs_the_noise_of_a_row_and_more_ridge() -> None:
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    m = glm.calibrate(epsilon, delta, unit="person")
    assert m == glm.calibrate(epsilon, delta) == pytest.approx(gaussian.mu(1, delta), rel=1e-12)
    free = glm.free_kappa(epsilon, Fraction(m) ** 2, unit="person")
    assert free == epsilon - Fraction(m) ** 2 / 2
    assert within(epsilon, delta, [RunCost(Fraction(m) ** 2, free, unit="person")])
    assert not within(epsilon, delta, [RunCost(Fraction(m) ** 2, free * Fraction(11, 10), unit="person")])
    assert glm.free_kappa(epsilon, Fraction(1, 20), "class_t", "person") == Fraction(1, 2) - Fraction(1, 80)
    assert glm.free_kappa(epsilon, Fraction(1, 20), "sign_changing", "person") == 0


def test_runs_of_persons_compose() -> None:
    run = RunCost(Fraction(1, 400), Fraction(1, 8), "class_t", unit="person")
    one = composition.epsilon(mu_squared=Fraction(0), failure=TAIL, atoms=(run.atom,), delta=Fraction(1, 10**6))
    two = composition.epsilon(mu_squared=Fraction(0), failure=2 * TAIL, atoms=(run.atom,) * 2, delta=Fraction(1, 10**6))
    assert one < two < 2 * one


def test_weights_multiply_both_sizes() -> None:
    run = RunCost(Fraction(1, 100), Fraction(1, 10), "class_t").for_persons(Fraction(3))
    assert (run.m_squared, run.kappa, run.unit) == (Fraction(9, 100), Fraction(3, 10), "person")
    assert run.critical_loss == 2 * Fraction(3, 10) + Fraction(9, 200)
    with pytest.raises(ValueError, match="greater than 0"):
        run.for_persons(Fraction(0))


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(ValueError, match="unit must be one of row, person"):
        RunCost(Fraction(1, 100), Fraction(1, 10), unit="table")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="use the atom"):
        _ = loss_of("class_t", 0.2, 0.5).curve
    with pytest.raises(ValueError, match="no Gaussian cost"):
        _ = RunCost(Fraction(1, 100), Fraction(1, 10), "class_t", unit="person").gaussian_squared
    with pytest.raises(ValueError, match="must be greater than 0"):
        Growth("class_t", Fraction(0), Fraction(1))


@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_at_zero_a_person_may_tell_more_than_a_gaussian_release(family: Family) -> None:
    """The bound on the total variation is m phi(0), in both directions, also where kappa is small beside m."""
    m = 1.2
    loss, zero = loss_of(family, m, 1.3), np.array([0.0])
    most = m / math.sqrt(2 * math.pi)
    assert most > gaussian_delta(m, 0.0) * 1.04
    assert allowed(loss.atom.add, zero)[0] >= most * (1 - 1e-12)
    assert allowed(loss.atom.remove, zero)[0] >= most * (1 - 1e-12)
    between = np.linspace(0.0, m**2 / 2, 9)
    root = np.sqrt(2 * between)
    curve = 0.5 + (m - root) / math.sqrt(2 * math.pi) - np.exp(between) * ndtr(-root)
    assert np.all(curve <= allowed(loss.atom.add, between) * (1 + 1e-9))


def test_rows_at_their_knee_tell_twice_as_much_at_zero() -> None:
    m, kappa = 0.2, 6.0
    loss = loss_of("class_t", m, kappa)
    person = Person(np.array([0.5, 0.5]), np.ones(2), np.zeros(2), np.zeros(2))
    laws = on_a_line("class_t", person, m, kappa, np.ones(8000))
    losses = np.array([0.0, -0.05, -0.5, 0.05])
    assert_within(loss, *laws, losses, 1e-13)
    assert hockey(*laws, losses)[0] > 1.5 * gaussian_delta(m, 0.0)


def test_what_cannot_be_followed_is_paid_for_at_the_critical_loss() -> None:
    for m, kappa in ((80.0, 1.0), (0.2, 1000.0)):
        loss = loss_of("class_t", m, kappa)
        assert loss.atom.remove == (Branch(loss.m_squared, Fraction(0)), Branch(Fraction(0), loss.critical_loss))


def test_bounded_curvature_is_paid_for_where_the_slope_is_largest() -> None:
    """Huber's loss bends right before its slope is largest: a table that lets theta move only there."""
    m, kappa = 0.05, 0.5
    loss, losses = loss_of("bounded", m, kappa), np.array([0.3, 0.45, 0.52])
    person = Person(np.array([0.5, 0.5]), np.ones(2), np.zeros(2), np.ones(2))
    best = np.zeros(3)
    for knee in np.linspace(0.0, 4.0, 21):
        held = (np.abs(np.linspace(-12, 12, 8000) + knee) < m / kappa).astype(float)
        laws = on_a_line("bounded", person, m, kappa, held)
        assert_within(loss, *laws, losses, 1e-13)
        best = np.maximum(best, hockey(*laws, losses))
    assert np.all(best > [100 * gaussian_delta(m, e) for e in losses])
