"""Selection: attacked with finite runs and adversarial orders, compared with tables, mpmath and coarse integrals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import count, islice
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from snugdp import Cost
from snugdp.accounting import gaussian as gauss
from snugdp.accounting import selection
from snugdp.accounting.composition import Atom, Branch
from snugdp.accounting.objective.run import RunCost
from snugdp.accounting.selection.comparison_bounds import Closed, Corollary
from snugdp.accounting.selection.laws import BALLS, FLOATS, Law, NegativeBinomial
from snugdp.accounting.selection.theorems import CellSum, Certificate, First
from snugdp.accounting.selection.tradeoff import TradeoffCurve, hull
from snugdp.numerics import balls
from snugdp.numerics.rationals import Real
from tests.effort import often, repeated, sampled

from .selected import LAWS, Run, base, exact, generating, masses, polynomial, runs

RUNS = runs(400)
EPSILONS = (0.0, 0.05, 0.3, 1.5)
POINTS = 40  # a coarse grid: larger bounds, and as true


def above(bound: float, value: float) -> bool:
    return bound >= value * (1 - 1e-9) - 1e-13


@cache
def pairs() -> list[tuple[Run, TradeoffCurve]]:
    """In make test a third of the runs, among them those that notice a wrong bound."""
    return [(run, base(run).curves[0]) for run in RUNS[often(2, 0) :: often(3, 1)]]


@sampled(9)
@repeated
@pytest.mark.parametrize("name", LAWS)
def test_no_finite_run_leaks_more_than_the_bounds(name: str) -> None:
    law, tight = LAWS[name], 0.0
    for run, curve in pairs():
        c1 = First(curve, law, POINTS)
        c2 = c1.sum
        for epsilon in EPSILONS:
            truth = exact(run, generating(law), epsilon)
            second, first = c2.guess(epsilon), c1.guess(epsilon)
            assert above(second, truth), (run, epsilon)
            assert above(first, second)
            if truth > 1e-9:
                tight = max(tight, truth / second)
    assert tight > 0.9  # the attack comes close, so it would notice


@sampled(2)
@repeated
@pytest.mark.parametrize("name", [name for name in LAWS if name != "binomial"])
def test_no_finite_run_leaks_more_than_the_closed_forms(name: str) -> None:
    law = LAWS[name]
    for run, curve in pairs()[::4]:
        closed, c1 = Closed(curve, law), First(curve, law, POINTS)
        for epsilon in EPSILONS:
            bound = closed.guess(epsilon)
            assert above(bound, exact(run, generating(law), epsilon)), run
            assert above(bound, c1.guess(epsilon))


@repeated
def test_no_finite_run_leaks_more_than_the_corollary() -> None:
    law = selection.geometric(10)
    for run, curve in pairs()[::2]:
        bound = Corollary(curve, law)
        for epsilon in EPSILONS:
            assert above(bound.guess(epsilon), exact(run, generating(law), epsilon)), run
        own = max(float(np.maximum(a - math.exp(0.2) * b, 0).sum()) for a, b in ((run.p, run.q), (run.q, run.p)))
        promise = selection.corollary("0.2", min(own, 0.999), "0.1")
        assert above(promise.delta, exact(run, generating(law), promise.epsilon))


@pytest.mark.parametrize("name", LAWS)
def test_balls_agree_with_floats_and_are_above_the_truth(name: str) -> None:
    law = LAWS[name]
    for run, curve in pairs()[::20]:
        plan = CellSum(curve, law, POINTS)
        with balls.precision(96):
            certificate = Certificate(plan)
            for epsilon in (0.0, 0.3, 1.0):
                found = certificate.c2(Fraction(epsilon))
                assert float(found.mid()) == pytest.approx(plan.guess(epsilon), rel=1e-9, abs=1e-14)
                assert certificate.c1(Fraction(epsilon)) >= found or found < 1e-20
                assert above(float(found.mid()), exact(run, generating(law), epsilon))


@repeated
def test_a_failure_mass_is_covered() -> None:
    lost = 0.01
    for run in RUNS[:: often(20, 10)]:
        ideal = base(run).curves[0]
        failing = Run(
            np.append(run.p * (1 - lost), [lost, 0]),
            np.append(run.q * (1 - lost), [0, lost]),
            np.append(run.score, [9, 9]),
        )
        curve = TradeoffCurve(*((a, np.minimum(d + lost, 1.0)) for a, d in (ideal.ahead, ideal.back)))
        for law in LAWS.values():
            bound = CellSum(curve, law, POINTS)
            for epsilon in EPSILONS:
                assert above(bound.guess(epsilon), exact(failing, generating(law), epsilon))


@sampled(8)
@repeated
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("most", [1, 3, 12])
def test_cutting_the_number_of_runs_is_free_if_it_refuses(name: str, most: int) -> None:
    law = LAWS[name]
    weights = masses(law, most)
    beyond = selection.beyond(law, most)
    assert beyond == pytest.approx(1 - weights.sum(), abs=1e-12)
    capped = weights + np.eye(most + 1)[most] * beyond
    for run, curve in pairs()[::10]:
        bound = CellSum(curve, law, POINTS)
        for epsilon in EPSILONS:
            assert above(bound.guess(epsilon), exact(run, polynomial(weights), epsilon))
            assert above(
                bound.guess(epsilon) / max(weights.sum(), 1e-9),
                exact(run, polynomial(weights / weights.sum()), epsilon),
            )
            assert above(bound.guess(epsilon) + beyond, exact(run, polynomial(capped), epsilon))


def test_running_the_last_one_anyway_is_not_free() -> None:
    w, law, most = math.exp(0.1), selection.geometric(10**5), 12
    run = Run(np.array([w, 1]) / (1 + w), np.array([1, w]) / (1 + w), np.array([0.0, 1.0]))
    weights = masses(law, most)
    assert selection.delta(Cost(epsilon="0.1"), law, "0.301") == 0
    assert exact(run, polynomial(weights), 0.301) == 0
    weights[most] += selection.beyond(law, most)
    assert exact(run, polynomial(weights), 0.301) > 1e-5


@sampled(3)
@repeated
@pytest.mark.parametrize("mutant", ["forward", "one", "lower"])
def test_a_wrong_bound_is_noticed(mutant: str) -> None:
    caught, law = 0, LAWS["geometric 30"]
    for run, curve in pairs():
        wrong = curve if mutant != "forward" else TradeoffCurve(curve.ahead, curve.ahead)
        bound = First(wrong, law, POINTS) if mutant != "lower" else CellSum(curve, law, POINTS)
        if mutant == "one":
            bound.sum.rho = bound.sum.rho * 0 + bound.sum.rho[0] ** 0.5  # type: ignore[union-attr]
        for epsilon in EPSILONS:
            value = bound.guess(epsilon) * (0.9 if mutant == "lower" else 1.0)
            caught += not above(value, exact(run, generating(law), epsilon))
    assert caught


def test_poisson_is_not_three_times_a_pure_run() -> None:
    w = math.exp(0.1)
    law, p = selection.poisson(30), w / (1 + w)
    # the best outcome wins unless no run shows it; the other one wins if only it is shown
    first, second = (math.exp(-30 * hit) - math.exp(-30) for hit in (1 - p, p))
    assert math.log(first / second) > 1.49
    run = Run(np.array([p, 1 - p]), np.array([1 - p, p]), np.array([0.0, 1.0]))
    assert exact(run, generating(law), 0.3) > 1e-9
    found = selection.epsilon(Cost(epsilon="0.1"), law, 0)
    assert found >= 30 * math.tanh(0.05) > 1.49
    assert 0.28 < selection.epsilon(Cost(epsilon="0.1"), selection.geometric(30), 0) <= 0.3
    assert 0.19 < selection.epsilon(Cost(epsilon="0.1"), selection.logarithmic(30), 0) <= 0.2


TABLE = {
    ("C2", 300): (0.0577, 0.1131, 0.2210, 0.4295, 0.8299),
    ("C1", 30): (0.0692, 0.1355, 0.2644, 0.5137, 0.9924),
    ("closed", 30): (0.0692, 0.1355, 0.2643, 0.5136, 0.9922),
    ("corollary", 30): (0.0373, 0.0722, 0.1395, 0.2685, 0.5125),
    ("liu_talwar", 30): (0.0205, 0.0406, 0.0802, 0.1583, 0.3110),
    ("liu_talwar", 300): (0.0192, 0.0381, 0.0755, 0.1492, 0.2937),
    ("renyi", 30): (0.0499, 0.0988, 0.1960, 0.3909, 0.7877),
}


@sampled(9)
@repeated
@pytest.mark.parametrize(("method", "runs"), TABLE)
def test_the_table_of_affordable_runs(method: str, runs: int) -> None:
    law = selection.geometric(runs)
    for epsilon, listed in list(zip((0.5, 1, 2, 4, 8), TABLE[method, runs], strict=True))[:: often(2, 1)]:
        assert listed <= selection.mu(law, epsilon, "1e-6", method=method) < listed + 0.0001 + 0.0002 * listed


@sampled(6)
@pytest.mark.parametrize(
    ("law", "listed"),
    [
        (selection.logarithmic(30), (0.1544, 0.5747)),
        (selection.truncated_negative_binomial("-0.5", 30), (0.1637, 0.6074)),
        (selection.truncated_negative_binomial(2, 30), (0.1324, 0.4966)),
        (selection.poisson(30), (0.0737, 0.2779)),
        (selection.Binomial(60, Fraction(1, 2)), (0.0638, 0.2376)),
    ],
)
def test_the_table_for_other_laws(law: Law, listed: tuple[float, float]) -> None:
    for epsilon, value in zip((1, 4), listed, strict=True):
        assert value * 0.9999 <= selection.mu(law, epsilon, "1e-6") < value + 0.0001


LIMITS = {"0.5": 0.072645, "1": 0.141485, "2": 0.274466, "4": 0.528902, "8": 1.010881}


@sampled(3)
@pytest.mark.parametrize("epsilon", LIMITS)
def test_within_a_thousandth_of_the_limit_and_never_beyond(epsilon: str) -> None:
    found = selection.mu(selection.geometric(30), epsilon, "1e-6")
    assert LIMITS[epsilon] * 0.9998 < found <= LIMITS[epsilon]


def riemann(mu: float, law: Law, epsilon: float, count: int = 20_000) -> float:
    """A lower sum of C2 for a Gaussian run, with rho taken at points only."""
    from scipy.special import ndtr, ndtri

    z = np.unique(np.concatenate([law.grid(count), np.geomspace(1e-15, 1, count // 3)]))[1:]
    b = ndtr(ndtri(z) + mu)
    rho = np.maximum.accumulate(law.rho(law.ratio(z, b, FLOATS), FLOATS))
    level = epsilon - np.log(rho)
    peak = ndtr(mu / 2 - level / mu)
    s = np.minimum(z, peak)
    d = s - np.exp(level) * ndtr(ndtri(s) - mu)
    share = law.share(z, FLOATS)
    return float(law.mean_in(FLOATS) * (-np.diff(share) @ np.minimum(d[:-1], d[1:]) + share[-1] * d[-1]))


@sampled(8)
@pytest.mark.parametrize("law", [*LAWS.values()], ids=[*LAWS])
@pytest.mark.parametrize(("mu", "epsilon"), [("0.05", "0.3"), ("0.3", "1.5"), ("1", "6")])
def test_between_the_integral_and_a_hair_more(law: Law, mu: str, epsilon: str) -> None:
    found, integral = selection.delta(selection.gaussian(mu), law, epsilon), riemann(float(mu), law, float(epsilon))
    assert min(1.0, integral) <= found <= 1.01 * integral + 1e-30


def test_sticks_are_above_the_exact_profile() -> None:
    mpmath.mp.dps = 40
    mu, lost = mpmath.mpf("0.3"), mpmath.mpf("1e-9")
    factors, bounds = selection.gaussian("0.3", "1e-9").curves[0].ahead
    for a, d in list(zip(factors.tolist(), bounds.tolist(), strict=True))[::40]:
        start = mu / 2 - mpmath.log(mpmath.mpf(a)) / mu
        truth = mpmath.ncdf(start) - mpmath.mpf(a) * mpmath.ncdf(start - mu) + lost
        assert truth <= mpmath.mpf(d) <= truth * (1 + mpmath.mpf(10) ** -14)


@pytest.mark.slow
def test_not_below_a_lower_sum_in_forty_digits() -> None:
    mpmath.mp.dps = 40
    mu, gamma, worst = mpmath.mpf("0.2"), mpmath.mpf(1) / 20, mpmath.mpf(1)
    shares, sticks = [], []
    for z in map(mpmath.mpf, np.geomspace(1e-6, 0.999, 200).tolist()):  # rho at points, for all larger z
        share = gamma / (gamma + (1 - gamma) * z)
        b = mpmath.ncdf(_quantile(z) + mu)
        worst = max(worst, ((gamma + (1 - gamma) * b) / (gamma + (1 - gamma) * z)) ** 2)
        s = min(z, mpmath.ncdf(mu / 2 - (1 - mpmath.log(worst)) / mu))
        sticks.append(s - mpmath.e / worst * mpmath.ncdf(_quantile(s) - mu))
        shares.append(20 * share**2)
    cells = zip(shares, [*shares[1:], mpmath.mpf(0)], sticks, strict=True)
    total = sum((first - second) * stick for first, second, stick in cells)
    found = selection.delta(selection.gaussian("0.2"), selection.geometric(20), 1)
    assert total <= found <= total * mpmath.mpf("1.1")


def _quantile(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1)


def test_both_directions_of_an_atom_are_followed() -> None:
    cost = Cost(atoms=(RunCost(Fraction(1, 400), Fraction(1, 20), "class_t").atom,))
    run, law = selection.of_cost(cost, 60), selection.geometric(5)
    assert len(run.curves) == 2
    orders = [selection.delta(selection.Base((curve,)), law, "0.3") for curve in run.curves]
    assert orders[0] != pytest.approx(orders[1])
    assert selection.delta(run, law, "0.3") == max(orders) > cost.delta_at(0.3)


def test_a_cost_is_the_curve_that_it_describes() -> None:
    law = selection.geometric(30)
    gaussian = selection.delta(selection.gaussian("0.1", "1e-8"), law, "0.6")
    assert selection.delta(Cost(mu="0.1", delta="1e-8"), law, "0.6") == pytest.approx(gaussian, rel=1e-12)
    almost = selection.delta(Cost(mu="0.1", epsilon="1e-9", delta="1e-8"), law, "0.6")
    assert gaussian * (1 - 1e-5) < almost < gaussian * 1.05
    varied = selection.delta(Cost(mu="0.1", variation="1e-8"), law, "0.6")
    assert gaussian < varied < 2 * gaussian


def test_the_polygon_is_the_pair() -> None:
    p, q = ["0.5", "0.3", "0.2"], ["0.7", "0.25", "0.05"]
    points: list[tuple[Real, Real]] = [(0, 0), ("0.2", "0.05"), ("0.5", "0.3"), (1, 1)]
    for epsilon in ("-0.4", 0, "0.7"):
        given_pair = selection.delta(selection.of_pair(p, q), LAWS["geometric"], epsilon)
        given_points = selection.delta(selection.of_vertices(points), LAWS["geometric"], epsilon)
        assert given_pair == pytest.approx(given_points, rel=1e-12)


@sampled(2)
@pytest.mark.parametrize("name", LAWS)
def test_below_zero_the_other_order_counts(name: str) -> None:
    law = LAWS[name]
    none = float(law.generating(np.array([1.0]), FLOATS)[0])  # bot, on both sides
    for run in RUNS[::150]:
        found = selection.delta(selection.one_order(base(run)), law, "-0.3")
        truth = exact(run, generating(law), -0.3) + none * (1 - math.exp(-0.3))
        assert above(found, truth)


@pytest.mark.slow
@repeated
@settings(max_examples=often(3, 5), deadline=None, derandomize=True)
@given(
    mu=st.floats(0.02, 1.0),
    runs=st.floats(1.5, 200.0),
    epsilon=st.floats(0.1, 6.0),
    failure=st.sampled_from(["0", "1e-9", "1e-5"]),
)
def test_monotone(mu: float, runs: float, epsilon: float, failure: str) -> None:
    law, more = selection.geometric(runs), selection.geometric(2 * runs)
    at = selection.delta(selection.gaussian(mu, failure), law, epsilon)
    assert at >= gauss.delta(mu, epsilon) * (1 - 1e-9)
    assert selection.delta(selection.gaussian(mu, failure), law, epsilon + 0.2) <= at
    assert selection.delta(selection.gaussian(1.2 * mu, failure), law, epsilon) >= at * (1 - 1e-3)
    assert selection.delta(selection.gaussian(mu, failure), more, epsilon) >= at * (1 - 1e-3)


@pytest.mark.slow
def test_epsilon_and_delta_are_inverse() -> None:
    run, law = selection.gaussian("0.3", "1e-10"), selection.logarithmic(12)
    for method in ("C2", "C1", "closed"):
        found = selection.epsilon(run, law, "1e-6", method)
        assert 0.99e-6 < selection.delta(run, law, found, method) <= 1e-6
    assert selection.epsilon(run, law, "1e-10") == math.inf
    assert selection.mu(law, 1, "1e-10", failure="1e-10") == 0.0
    assert selection.mu(law, 1, "1e-6", failure="1e-8") < selection.mu(law, 1, "1e-6")
    for method in ("corollary", "liu_talwar", "renyi"):
        found = selection.epsilon(selection.gaussian("0.05"), selection.geometric(30), "1e-6", method)
        assert selection.delta(selection.gaussian("0.05"), selection.geometric(30), found, method) <= 1e-6


@pytest.mark.slow
def test_families() -> None:
    law = selection.geometric(30)
    plain = selection.largest(lambda scale: Cost(mu=scale), law, 1, "1e-6", most=5.0)
    assert plain == pytest.approx(selection.mu(law, 1, "1e-6"), rel=1e-6)
    both = selection.largest(lambda scale: Cost(mu=scale / 2, epsilon=scale / 10), law, 1, "1e-6", most=5.0)
    assert 0.1 < both < 2 * plain
    assert selection.epsilon(Cost(mu=both / 2, epsilon=both / 10), law, "1e-6") <= 1


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize(("unit", "found"), [("1e-170", 100.0), ("1e160", 0.0)])
def test_a_family_beyond_what_floats_hold(unit: str, found: float) -> None:
    """The square of mu is 0, or infinite, as a float: the search must not end in no number, nor in an overflow."""
    size = Fraction(unit)
    with np.errstate(all="raise", under="ignore"):
        scale = selection.largest(lambda scale: Cost(mu=scale * size), selection.geometric(30), 1, "1e-6")
    assert scale == pytest.approx(found)


@pytest.mark.slow
def test_one_test_before_all_runs() -> None:
    law, run = selection.geometric(30), selection.gaussian("0.3")
    alone = selection.epsilon(run, law, "1e-6")
    shared = selection.shared_epsilon(run, law, "1e-6", test="0.2", nodes=70)
    inside = selection.epsilon(selection.gaussian(Fraction(math.sqrt(0.13))), law, "1e-6")
    assert 2.19 < alone < 2.197
    assert 2.509 < shared < 2.52
    assert 2.66 < inside < 2.667
    assert selection.shared_delta(run, law, shared, test="0.2", failure="1e-7", nodes=70) == pytest.approx(
        1.1e-6, rel=0.1
    )
    small = selection.shared_delta(run, law, 5, test="0.2", nodes=40)
    assert selection.delta(run, law, 5) < small < 1e-18
    nothing = selection.shared_epsilon(run, law, "1e-6", test=0, nodes=40)
    assert alone <= nothing < alone * 1.01


def one_way_runs(e: float, f: float, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The two laws of a run that has cost (e, f) in one order only, in pieces, by their scores: the worst there is."""
    w = math.exp(e)
    x = (w - 1 + w * f - f / w) / (w - 1 / w)
    kinds = np.array([[f, 0], [x - f, (x - f) / w], [1 - x, w * (1 - x)], [0, w * f]])
    order = generator.permutation([0, 1, 1, 1, 2, 2, 3, 3])
    parts = generator.exponential(size=8) ** 3
    parts /= np.array([parts[order == kind].sum() for kind in order])
    return kinds[order, 0] * parts, kinds[order, 1] * parts


@pytest.mark.parametrize(("e", "f"), [(0.5, 0.01), (1.0, 0.03), (2.0, 0.05)])
def test_a_failure_that_is_known_in_one_order_counts_more_in_the_other(e: float, f: float) -> None:
    """A certificate that is right for X says nothing of the runs on X' with X' first."""
    cost, w = Cost(epsilon=e, delta=f), math.exp(e)
    p, q = [1 - f, f, 0], [1 - w * f, 0, w * f]  # without its failure the pair is within w both ways
    real = selection.of_pair(p, q).curves[0]
    (both,), (one,) = selection.of_cost(cost).curves, selection.of_cost_one_way(cost).curves
    assert real.back[1][-1] == pytest.approx(w * f)
    assert both.back[1][-1] < 0.8 * w * f, "the sticks of both orders do not hold for this pair"
    assert above(one.back[1][-1], w * f)
    assert one.ahead[1].tolist() == both.ahead[1].tolist()
    generator = np.random.default_rng(1)
    for name in ("geometric", "poisson", "logarithmic"):
        law = selection.NAMES[name](5)
        bounds = {level: CellSum(one, law, 300).guess(level) for level in (0.1, e, 2 * e, 3 * e)}
        less = {level: CellSum(both, law, 300).guess(level) for level in bounds}
        assert all(above(bounds[level], less[level]) for level in bounds)
        assert bounds[0.1] > less[0.1]
        for _ in range(200):
            first, second = (np.concatenate([[0], np.cumsum(side)]) for side in one_way_runs(e, f, generator))
            won = [np.diff(law.generating(1 - side, FLOATS)) for side in (first, second)]
            for level, bound in bounds.items():
                assert above(bound, float(np.maximum(won[0] - math.exp(level) * won[1], 0).sum()))


def test_one_way_with_atoms_and_without_failure() -> None:
    plain = Cost(mu="0.5", epsilon="0.1", variation="1e-6")
    (both,), (one,) = selection.of_cost(plain).curves, selection.of_cost_one_way(plain).curves
    assert [side.tolist() for side in one.back] == [side.tolist() for side in both.back]
    constant = Atom(*(((Branch(Fraction(0), Fraction(1)),),) * 2))  # a loss of at most 1, in one order
    followed = selection.of_cost_one_way(Cost(atoms=(constant,), delta="0.01")).curves[0]
    assert float(followed.back[1][0]) == pytest.approx(
        1 - math.exp(-1) + 0.01
    )  # which the other order may lose for good


@pytest.mark.slow
def test_routes() -> None:
    few = selection.routes(1, "1e-6", 3)
    many = selection.routes(1, "1e-6", 30)
    assert [route.name for route in few] == ["geometric", "logarithmic", "Poisson", "compose"]
    assert many[0].scale > 3 * many[-1].scale
    assert many[-1].scale == pytest.approx(0.0432, abs=1e-4)
    assert many[0].best_tried == pytest.approx(0.5085, abs=1e-4)
    assert Cost(mu_squared=30 * Fraction(many[-1].scale) ** 2).delta_at(1) <= 1e-6
    family = selection.routes(1, "1e-6", 4, laws=("geometric",), family=lambda scale: Cost(epsilon=scale))
    assert family[0].scale > 1 / 3
    assert 0.25 <= family[1].scale <= 0.26
    assert selection.routes(1, "1e-6", 4, laws=(), failure="1e-6")[0].scale == 0.0


def test_means_of_laws() -> None:
    for size in (1.5, 30, 1000):
        for law in (selection.geometric(size), selection.logarithmic(size), selection.binomial(size)):
            assert selection.mean(law) == pytest.approx(size, rel=1e-9)


@pytest.mark.parametrize(
    "law",
    [
        selection.geometric(5),
        selection.logarithmic(5),
        selection.truncated_negative_binomial("-0.5", 5),
        selection.truncated_negative_binomial(2, 5),
        selection.poisson(5),
        selection.binomial(5),
        selection.Binomial(7, Fraction(1, 3)),
    ],
    ids=str,
)
def test_shares_are_those_of_the_masses(law: Law) -> None:
    """What is paid by and what is drawn by: proved equal where the rest of the sum is bounded, up to 2^-150."""
    with balls.precision(256):
        chances = list(islice(law.masses(), 2001))
        for x in (Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(4, 5)):
            at, z = balls.ball(x), balls.ball(1 - x)
            rest = arb(0, arb(2) ** -150)  # more than the sum of k x^(k - 1) over k > 2000
            total = sum((p * at**k for k, p in enumerate(chances)), arb(0)) + rest
            slope = sum((k * p * at ** (k - 1) for k, p in enumerate(chances) if k), arb(0)) + rest
            assert total.overlaps(law.generating(z, BALLS))
            assert slope.overlaps(law.mean_in(BALLS) * law.share(z, BALLS))
            for b in (1 - x, (2 - x) / 2):
                rho = law.rho(law.ratio(z, balls.ball(b), BALLS), BALLS)
                assert (rho * law.share(balls.ball(b), BALLS)).overlaps(law.share(z, BALLS))
        assert sum(chances, arb(0)) < 1 + arb(2) ** -150


def test_a_law_of_somebody_else_is_refused() -> None:
    """It was believed: priced as a geometric law of mean 2, drawn as a thousand runs for certain."""

    class Liar(NegativeBinomial):
        def masses(self) -> Iterator[arb]:
            yield from (arb(k == 1000) for k in count())

    liar = Liar(Fraction(1), Fraction(1, 2))
    calls: tuple[Callable[[], Any], ...] = (
        lambda: selection.delta(selection.gaussian(1), liar, 1),
        lambda: selection.epsilon(selection.gaussian(1), liar, "1e-6"),
        lambda: selection.mu(liar, 1, "1e-6"),
        lambda: selection.shared_delta(selection.gaussian(1), liar, 1, test="0.2"),
        lambda: selection.shared_epsilon(selection.gaussian(1), liar, "1e-6", test="0.2"),
        lambda: selection.routes(1, "1e-6", 3, laws=(liar,)),
    )
    for call in calls:
        with pytest.raises(TypeError, match="must be one of"):
            call()


def test_parameters_of_laws_are_exact() -> None:
    assert NegativeBinomial(1, "1/2") == NegativeBinomial(1.0, 0.5) == selection.geometric(2)  # type: ignore[arg-type]
    assert selection.Poisson(0.1).runs == selection.Binomial(2, 0.1).p == Fraction(1, 10)  # type: ignore[arg-type]
    for n in (2.5, True, "3"):
        with pytest.raises(TypeError, match="whole number"):
            selection.Binomial(n, Fraction(1, 2))  # type: ignore[arg-type]


def test_the_hull_keeps_what_matters() -> None:
    factors, bounds = hull(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.49, 0.1, 0.2]))
    assert factors.tolist() == [1.0, 3.0]
    assert bounds.tolist() == [0.5, 0.1]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: selection.geometric(1),
        lambda: selection.poisson(0),
        lambda: selection.Binomial(3, Fraction(1)),
        lambda: NegativeBinomial(Fraction(-1), Fraction(1, 2)),
        lambda: NegativeBinomial(Fraction(1), Fraction(1)),
        lambda: selection.of_pair([1], ["1/2", "1/2"]),
        lambda: selection.of_pair(["1/2"], ["1/2"]),
        lambda: selection.of_vertices([(0, 0), ("1/2", "0.4"), (1, "0.5")]),
        lambda: selection.of_vertices([(0, "0.1"), (1, 1)]),
        lambda: selection.delta(selection.gaussian(1), selection.geometric(2), 1, "C3"),
        lambda: selection.delta(selection.gaussian(1, "1e-6"), selection.geometric(2), 1, "renyi"),
        lambda: selection.delta(selection.gaussian(1), selection.binomial(2), 1, "closed"),
        lambda: selection.delta(selection.gaussian(1), selection.poisson(2), 1, "corollary"),
        lambda: selection.liu_talwar(1, "1e-6", "0.1", "0.5"),
        lambda: selection.routes(1, "1e-6", 0),
    ],
)
def test_what_cannot_be_is_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError):
        wrong()
