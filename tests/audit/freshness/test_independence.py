"""Layer I: noise that is used twice is found, whoever uses it."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np

from snugdp.audit import registry
from snugdp.audit.finding import Case
from snugdp.audit.freshness.independence import correlation_p, decisions, equal_draws, fingerprint, lanes, walks
from snugdp.audit.laws.goodness import LawEffort, size
from snugdp.audit.steps.residuals import fineness, residuals
from snugdp.core.guarantee import Cost
from snugdp.noise import DiscreteLaplace, Exact, Gaussian, Laplace, Noise, Simulation
from snugdp.noise.recording import Witness
from snugdp.secrecy.secret import Secret

LIGHT = LawEffort(many=0.06, single=0.2)


def failed(findings: Any) -> set[str]:
    return {finding.case for finding in findings if not finding.passed}


def test_the_exact_source_never_repeats_itself() -> None:
    assert failed(equal_draws(Exact)) == set()
    assert failed(decisions(Exact(), LIGHT)) == set()
    assert failed(lanes(Simulation(3), LIGHT)) == set()


def test_a_seed_is_found_in_forks_copies_and_sources() -> None:
    assert failed(equal_draws(lambda: Simulation(1))) == {
        f"equal draws, {way}" for way in ("sources", "forks", "copies")
    }


class Cached(Simulation):
    """The same vector for every call of one length."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._kept: dict[int, Any] = {}

    def _many(self, law: Any, n: int) -> Any:
        z = self._kept.setdefault(n, super()._many(Gaussian(1), n))
        return z * float(getattr(law, "sigma", getattr(law, "scale", 1)))


class Lagged(Simulation):
    """Every draw holds a little of the one before."""

    def _many(self, law: Any, n: int) -> Any:
        z = super()._many(law, n + 1)
        return z[1:] + 0.2 * z[:-1]


class Tied(Simulation):
    """Winners, places and coins that come in twos."""

    def argmaxes(self, scores: Any, law: Any) -> Any:
        return np.repeat(super().argmaxes(scores, law)[::2], 2)[: len(scores._value)]

    def scatter(self, n: int, parts: int) -> Any:
        return np.repeat(super().scatter(n, parts)[: (n + 1) // 2], 2)[:n]


def test_reuse_inside_a_source_is_found() -> None:
    assert "lanes" in failed(lanes(Cached(1), LIGHT))
    assert "add" in failed(lanes(Cached(1), LIGHT))
    assert "lanes" in failed(lanes(Lagged(1), LIGHT))
    assert {"argmaxes", "scatter"} <= failed(decisions(Tied(1), LIGHT))
    assert "equal draws, calls" in failed(equal_draws(lambda: Cached(1)))


def walk(data: int, noise: Noise) -> Any:
    noise.at_least(Secret(data), DiscreteLaplace(3), 1)
    noise.add(Secret(data), Gaussian(5), grid=-20)
    noise.add(Secret(data), Laplace(2), grid=-24, stretch=Secret(3))
    noise.add_integers(Secret([data, 7]), Gaussian(1000))
    unit = Fraction(1)
    noise.posterior(Secret([[4, 1], [1, 2]]), Secret([data, 3]), unit=unit, ridge=unit, precision=unit, grid=-30)


CASE: Case[int] = Case("a walk", walk, Cost(mu=1), lambda: [(0, 1)])


def fresh(kind: Any) -> Any:
    seeds = iter(range(10**6))
    return lambda: kind(next(seeds))


def test_a_walk_with_fresh_noise_passes() -> None:
    found = walks(CASE, source=fresh(Simulation))
    assert [finding.passed for finding in found] == [True, True]
    assert "finds shared noise" in found[0].measured
    assert "7 residuals" in found[0].claim


def test_a_walk_that_uses_noise_twice_is_found() -> None:
    found = walks(CASE, source=fresh(Cached))
    assert [finding.passed for finding in found] == [False, True]


def test_runs_that_repeat_each_other_are_found() -> None:
    start = Simulation(1)
    found = walks(CASE, source=lambda: copy.deepcopy(start))
    assert [finding.passed for finding in found] == [False, False]
    assert found[1].detail == "noise is used twice"


def test_residuals_are_standard_normal() -> None:
    rows = []
    for seed in range(500):
        witness = Witness(seed)
        walk(1, witness)
        rows.append(np.concatenate([residuals(site) for site in witness.transcript()]))
    table = np.array(rows)
    assert table.shape[1] == 7
    assert np.abs(table.mean(axis=0)).max() < 0.25
    assert np.abs(table.std(axis=0) - 1).max() < 0.2
    assert sum(fineness(site) for site in witness.transcript()) > 60


def test_correlations() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 300))
    assert correlation_p(x, y) > 1e-3
    assert correlation_p(x, x) == correlation_p(x, np.ones(300)) == 0.0
    assert correlation_p(x, x + y) < 1e-20
    assert len(set(fingerprint(Exact()).split())) == 10


def test_one_coefficient_on_a_coarse_grid_may_come_twice() -> None:
    case = registry.case("linear: objective")
    witness = Witness(1)
    case.run(next(iter(case.worst()))[0], witness)
    (site,) = witness.transcript()
    assert 5 < fineness(site) < 20  # cells of 2^-17, and noise of some hundred of them
    assert not [one for one in walks(case, 60) if "repeats" in one.claim]


def test_coins_of_which_exactly_half_fell_on_each_side() -> None:
    """One audit in 60 sees that: then all are equally far from their mean."""
    effort = LawEffort()
    count = size(1, 4 * effort.single) * 4
    fell = iter(np.random.default_rng(5).permutation(np.arange(count) % 2 == 0).tolist())

    class Even(Simulation):
        def at_least(self, *given: Any) -> bool:
            return bool(next(fell))

    found = [one for one in lanes(Even(1), effort) if one.case == "at_least"]
    assert len(found) == 1
    assert found[0].passed, found[0]
    assert next(fell, None) is None
