"""Layer L: grids and last bits of mechanisms, and of anybody's floats."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from snugdp.audit.finding import Case, Finding
from snugdp.audit.laws.low_bits import cells_in_noise, gridded, last_place, low_bits, sampler
from snugdp.core.guarantee import Cost
from snugdp.noise import Gaussian, Noise, Simulation
from snugdp.noise.recording import Witness
from snugdp.secrecy.secret import Secret

ROOT = np.array([[1.0, 0.0], [0.3, 0.5]])


def case(run: Callable[[int, Noise], Any]) -> Case[int]:
    return Case("sums", run, Cost(mu=1), lambda: [(0, 1)])


def once() -> Any:
    seeds = iter(range(10**6))
    return lambda: Simulation(next(seeds))


def passed(findings: list[Finding]) -> list[bool]:
    return [finding.passed for finding in findings]


def honest(data: int, noise: Noise) -> Any:
    for _ in range(4):
        noise.add(Secret(data), Gaussian(1), grid=-20)
    noise.add_integers(Secret([data]), Gaussian(1000))
    gram: Secret[list[list[int]]] = Secret([[3 + data]])
    one = Fraction(1)
    noise.posterior(gram, Secret([1]), unit=one, ridge=one, precision=one, grid=-20)


def test_numbers_on_public_grids_pass() -> None:
    assert passed(low_bits(case(honest), source=once())) == [True, True]


def test_a_grid_that_follows_the_data_is_found() -> None:
    found = low_bits(case(lambda data, noise: noise.add(Secret(data), Gaussian(1), grid=-20 - data)), source=once())
    assert found[0].detail.startswith("the grid depends on the data")


class Even(Simulation):
    """Whose last bit is always zero for one of two neighbours."""

    def add(self, value: Any, law: Any, *, grid: int = 0, stretch: Any = None) -> Fraction:
        coarser = grid + int(value._value)
        return super().add(value, law, grid=coarser)


class Floats(Simulation):
    """Who forgets to round."""

    def add(self, value: Any, law: Any, *, grid: int = 0, stretch: Any = None) -> Fraction:
        return Fraction(value._value + float(self._one(law)))


@pytest.mark.parametrize(("source", "place"), [(Even, 1), (Floats, 0)])
def test_last_bits_that_tell_are_found(source: Any, place: int) -> None:
    seeds = iter(range(10**6))

    def run(data: int, noise: Noise) -> Any:
        for _ in range(5):
            noise.add(Secret(data), Gaussian(1), grid=-20)

    found = low_bits(case(run), source=lambda: source(next(seeds)))
    assert not found[place].passed


def test_sites_in_cells() -> None:
    witness = Witness(1)
    honest(1, witness)
    sites = witness.transcript().sites
    assert all(cell.denominator == 1 for site in sites for cell in gridded(site))
    assert [round(cells_in_noise(site)) for site in sites[-2:]] == [1000, round(2**20 / math.sqrt(5))]
    assert last_place(np.array([0.0, 1.5, math.inf, -8.0])).tolist() == [-1, 3]
    nothing = case(lambda data, noise: noise.choice(3))
    assert low_bits(nothing, source=once()) == []


def test_floats_plus_floats_are_found() -> None:
    rng = np.random.default_rng(1)
    samplers: list[tuple[str, Any, tuple[Any, Any]]] = [
        ("posterior", lambda theta: theta + ROOT @ rng.normal(size=2), (np.ones(2), np.array([0.0, 1.0]))),
        ("Laplace", lambda v: v + rng.choice([-1, 1]) * math.log(1 - rng.random()), (0.0, 1.0)),
    ]
    for name, sample, (first, second) in samplers:
        found = sampler(name, sample, first, second, runs=1500)
        assert passed(found) == [False], name
        assert found[0].detail.startswith("wrong")


def test_floats_of_one_size_are_no_evidence() -> None:
    rng = np.random.default_rng(3)
    found = sampler("far from zero", lambda v: v + 3 * rng.normal(), 800.0, 801.0, runs=1500)
    assert found[0].detail.startswith("too weak")


def test_rounded_and_whole_samplers_pass() -> None:
    rng = np.random.default_rng(2)
    assert passed(sampler("rounded", lambda v: np.round((v + rng.laplace(size=2)) * 2**20) / 2**20, 0.0, 1.0)) == [True]
    assert passed(sampler("whole", lambda v: v + rng.geometric(0.3) - rng.geometric(0.3), 0, 1)) == [True]
    even = sampler("even", lambda v: np.round((v + rng.normal()) * 2**20) / 2**20 * (1 + v), 0.0, 1.0)
    assert passed(even) == [False]  # one neighbour has even numbers only
