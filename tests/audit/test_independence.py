"""Layer I: noise that is used twice along a walk, or in two runs, is found."""

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp.audit.finding import Case
from snugdp.audit.independence import correlation_p, fineness, residuals, walks
from snugdp.core.guarantee import Cost
from snugdp.noise import DiscreteLaplace, Gaussian, Laplace, Noise, Simulation
from snugdp.noise.recording import Witness
from snugdp.secrecy.secret import Secret
from snugdp_studies.audit import library
from tests.audit.toys import Cached
from tests.effort import often, repeated


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


@pytest.mark.slow
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


@pytest.mark.slow
@repeated
def test_one_coefficient_on_a_coarse_grid_may_come_twice() -> None:
    case = library.case("linear: objective")
    witness = Witness(1)
    case.run(next(iter(case.worst()))[0], witness)
    (site,) = witness.transcript()
    assert 5 < fineness(site) < 20  # cells of 2^-17, and noise of some hundred of them
    assert not [one for one in walks(case, often(8, 12, 60)) if "repeats" in one.claim]
