"""Mechanisms of others: seen from outside, and drawn through our noise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snugdp.audit import Case, audit, black_box, released_by
from snugdp.audit.independence import walks
from snugdp.core.guarantee import Budget, Cost
from snugdp.noise import DiscreteLaplace, Laplace, Simulation
from tests.effort import sampled


def laplace(scale: float, seed: int = 1) -> Callable[[float], float]:
    generator = np.random.default_rng(seed)
    return lambda value: value + float(generator.laplace(scale=scale))


@sampled(3)
@pytest.mark.parametrize("claim", [Cost(epsilon=1), Budget(epsilon=1, delta=0.01), Cost(mu=1.2)])
def test_a_true_claim_is_not_refuted(claim: Cost | Budget) -> None:
    found = black_box(laplace(1.0), (1.0, 0.0), claim, runs=4000)
    assert found.passed, found


@sampled(3)
@pytest.mark.parametrize("claim", [Cost(epsilon=1), Budget(epsilon=1, delta=0.01), Cost(mu=1)])
@pytest.mark.parametrize("score", [None, float, lambda x: -x])
def test_a_gross_mistake_is_refuted(claim: Cost | Budget, score: Callable[[Any], float] | None) -> None:
    found = black_box(laplace(0.25), (1.0, 0.0), claim, score=score, runs=4000)
    assert not found.passed, found
    assert found.curve is not None
    assert max(low - p for low, p in zip(found.curve.low, found.curve.claimed, strict=True)) > 0


def test_words_and_refusals_are_told_apart() -> None:
    generator = np.random.default_rng(2)

    def refuses(often: float) -> str | None:
        return None if generator.random() < often else "yes"

    assert not black_box(refuses, (0.9, 0.1), Cost(epsilon=1), runs=2000).passed
    assert black_box(refuses, (0.6, 0.4), Cost(epsilon=1), runs=2000).passed


def test_what_is_asked_must_make_sense() -> None:
    with pytest.raises(ValueError, match="100 runs"):
        black_box(laplace(1), (1.0, 0.0), Cost(epsilon=1), runs=10)
    with pytest.raises(TypeError, match="Budget"):
        black_box(laplace(1), (1.0, 0.0), 1.0, runs=100)


@pytest.mark.parametrize(("factor", "passes"), [(2, True), (1, False)])
def test_a_walk_of_your_own(factor: int, passes: bool) -> None:
    """A sum of numbers between -1 and 1 under replacement moves by 2."""
    claim = Cost(epsilon=1, neighbours="replace")

    def draw(rows: Any, noise: Any) -> float:
        return float(noise.add(rows.map(lambda xs: sum(min(max(x, -1), 1) for x in xs)), Laplace(factor), grid=-20))

    mine = Case("sum", released_by(draw, claim), claim, worst=lambda: [([0, 0, -1], [0, 0, 1])])
    report = audit(mine, layers="DN")
    assert report.passed is passes, report
    assert {finding.layer for finding in report.failures} == (set() if passes else {"D", "N"})


def test_a_refusal_of_your_own() -> None:
    assert released_by(lambda rows, noise: None, Cost(epsilon=1))([1], Simulation(1)).refused


def counted(scale: Any = 1) -> Callable[[Any, Any], float]:
    return lambda rows, noise: float(noise.add(rows.map(len), DiscreteLaplace(scale)))


ONE = {"name": "rows", "cost": Cost(epsilon=1), "worst": lambda: [([1], [1, 1])]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"run": lambda rows, noise: None}, "released_by"),
        ({"run": lambda rows, noise: 3.0}, "released_by"),
        ({"run": released_by(counted(), Cost(epsilon=1)), "worst": list}, "at least one pair"),
        ({"run": released_by(counted(), Cost(epsilon=1)), "worst": lambda: 1 / 0}, "ZeroDivisionError"),
        ({"run": released_by(lambda rows, noise: 1 / 0, Cost(epsilon=1))}, "ZeroDivisionError"),
    ],
)
def test_a_case_that_is_none_is_one_finding(given: dict[str, Any], words: str) -> None:
    right = Case(**{**ONE, "name": "another", "run": released_by(counted(), Cost(epsilon=1))})
    report = audit([Case(**{**ONE, **given}), right], layers="NE")
    assert [finding.case for finding in report.failures] == ["rows"]
    assert words in report.failures[0].detail


@pytest.mark.parametrize("wrong", [{"cost": Budget(1, 0)}, {"worst": [([1], [1, 1])]}, {"random": 5}, {"run": None}])
def test_a_case_says_what_it_needs(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"cost is|are functions"):
        Case(**{**ONE, "run": released_by(counted(), Cost(epsilon=1)), **wrong})
    with pytest.raises(TypeError, match="one for every step"):
        released_by(counted(), {})
    with pytest.raises(TypeError, match="one for every step"):
        released_by(counted(), [Cost(epsilon=1)])


def test_every_step_of_a_mechanism_of_others() -> None:
    """Two counts, the second with half the noise that it pays for; the first has slack for both."""

    def draw(rows: Any, noise: Any) -> list[float]:
        return [counted(8)(rows, noise.at("first")), counted(1)(rows, noise.at("second"))]

    costs = {"first": Cost(epsilon=1), "second": Cost(epsilon="1/2")}
    case = Case(**{**ONE, "cost": Cost(epsilon="3/2"), "run": released_by(draw, costs)})
    report = audit(case, layers="N")
    found = [(finding.passed, finding.claim[:10]) for finding in report.findings]
    assert found == [(True, "mu <= 0, e"), (False, "every step")]


@sampled(3)
@pytest.mark.parametrize("scale", ["1.01", "1.1", "1.5"])
def test_coarse_noise_is_noise(scale: str) -> None:
    """Often 0, and not always: 32 runs, 40 times."""
    case = Case(**{**ONE, "run": released_by(counted(scale), Cost(epsilon=1))})
    numbers = iter(range(40 * 32))
    for _ in range(40):
        assert all(one.passed for one in walks(case, 32, source=lambda: Simulation(next(numbers))))


def test_a_function_that_carries_rows_is_seen() -> None:
    def draw(rows: Any, noise: Any) -> Any:
        counted()(rows, noise)
        inside = rows._value
        return lambda x: x + len(inside)

    assert not audit(Case(**{**ONE, "run": released_by(draw, Cost(epsilon=1))}), layers="N").passed
