"""Mechanisms of others: seen from outside, and drawn through our noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snugdp.audit import Case, audit, black_box, released_by
from snugdp.guarantee import Budget, Cost
from snugdp.noise import Laplace


def laplace(scale: float, seed: int = 1) -> Callable[[float], float]:
    generator = np.random.default_rng(seed)
    return lambda value: value + float(generator.laplace(scale=scale))


@pytest.mark.parametrize("claim", [Cost(epsilon=1), Budget(epsilon=1, delta=0.01), Cost(mu=1.2)])
def test_a_true_claim_is_not_refuted(claim: Cost | Budget) -> None:
    found = black_box(laplace(1.0), (1.0, 0.0), claim, runs=4000)
    assert found.passed, found


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
    run = released_by(lambda rows, noise: None, Cost(epsilon=1))
    from snugdp.noise import Simulation

    assert run([1], Simulation(1)).refused
