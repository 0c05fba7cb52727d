"""What a person with several rows moves of a fit, over the noise: the exact distance of all that is released."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.noise import Gaussian
from snugdp.noise.recording import Replay, Witness, private_inputs
from tests.effort import often, repeated, sampled

MOST = 3
RNG = np.random.default_rng(11)
WHO = np.repeat(np.arange(60), 1 + np.arange(60) % 5)
X = RNG.uniform(-0.5, 0.5, (len(WHO), 2)) * [1.0, 0.2]
HOW: dict[str, Any] = {"epsilon": 4, "person": "who", "max_rows": MOST}
LINE: dict[str, Any] = {**HOW, "x_norm": 1, "y_bound": 1, "fit_intercept": False}
FITS: dict[str, Callable[..., Any]] = {
    "adassp": lambda **how: snugdp.LinearRegression(**LINE, method="adassp", **how),
    "sufficient": lambda **how: snugdp.LinearRegression(**LINE, method="sufficient", **how),
    "descent": lambda **how: snugdp.LinearRegression(**LINE, method="descent", rows=200, proposals={"steps": 3}, **how),
    "output": lambda **how: snugdp.LinearRegression(**LINE, method="output", proposals={"ridge": 20}, **how),
    "logistic": lambda **how: snugdp.LogisticRegression(
        **HOW, x_norm=1, classes=[False, True], method="output", proposals={"ridge": 20}, fit_intercept=False, **how
    ),
    "gauss": lambda **how: snugdp.PCA(1, **HOW, x_norm=1, method="gauss", center="private", **how),
    "crossing": lambda **how: snugdp.PCA(1, **HOW, x_norm=1, **how),
    "projector": lambda **how: snugdp.PCA(1, **HOW, x_norm=1, method="projector", rows=1, **how),
    "dual": lambda **how: snugdp.PCA(1, **HOW, x_norm=1, method="dual", **how),
    "scores": lambda **how: snugdp.SparseLinearRegression(
        1, **HOW, y_bound=1, selection="gaussian", row_norm=1, method="adassp", fit_intercept=False, **how
    ),
}
PERSONS = {  # more rows than are kept, as far out as the bounds allow, alike or not
    "alike": np.tile([[1.0, 0.0, 1.0]], (5, 1)),
    "across": np.tile([[0.5**0.5, -(0.5**0.5), -1.0]], (5, 1)),
    "far": np.array([[9.0, 9.0, 9.0], [-9.0, 9.0, 9.0], [9.0, -9.0, -9.0], [0.0, 9.0, 9.0]]),
}


def fitted(name: str, given: tuple[Any, Any], noise: Any) -> Any:
    rows, who = given
    table = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "who": who})
    target = rows[:, 2] > 0 if name == "logistic" else rows[:, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[name](noise=noise).fit(table, target)


def pair(person: str, times: int) -> tuple[Any, Any]:
    """Two tables, as rows and identifiers: the second has one person more. ``times``: 0 for hardly anybody else."""
    rows = np.tile(np.column_stack([X, X[:, 0] - X[:, 1]]), (max(times, 1), 1)) * min(times, 1)
    who, more = np.concatenate([WHO + 1000 * time for time in range(max(times, 1))]), PERSONS[person]
    return (rows, who), (np.vstack([more, rows]), np.concatenate([np.full(len(more), -1), who]))


def distances(name: str, one: Any, other: Any, seed: int) -> dict[str, float]:
    """The square of the exact Gaussian distance between what is released on both tables, over its cost, by steps."""
    first = Witness(seed)
    model = fitted(name, one, first)
    second = Replay(first.transcript())
    fitted(name, other, second)
    assert second.finished
    squares = dict.fromkeys(model.plan_.step_ids, Fraction(0))
    for here, there in zip(first.transcript(), second.transcript(), strict=True):
        if isinstance(here.law, Gaussian):
            mine, yours = (np.atleast_1d(np.array(private_inputs(site)[0], object)) for site in (here, there))
            moved = sum((Fraction(a - b) ** 2 for a, b in zip(mine, yours, strict=True)), Fraction(0))
            squares[here.step] += moved / here.law.sigma**2
    return {step.id: float(squares[step.id] / step.cost.mu_squared) for step in model.plan_.steps}


ATTAINED = {  # of what is paid for, where it is less than all of it: other tests attack these bounds
    "test-curvature": 0.4,
    "test-residual": 0.7,
    "output/release": 0.001,
    "logistic/test": 0.005,
    "logistic/release": 0.3,
}


@sampled(10)
@repeated
@pytest.mark.parametrize("name", FITS)
def test_no_person_moves_a_fit_further_than_it_costs(name: str) -> None:
    """And some persons as far, or nearly: less noise would be a breach."""
    worst: dict[str, float] = {}
    for person in PERSONS:
        for times in (0, 12):
            one, other = pair(person, times)
            for tables in ((one, other), (other, one)):
                for seed in range(1, often(2, 6)):
                    for step, part in distances(name, *tables, seed).items():
                        assert part <= 1  # the tests of these draws are right: no delta is needed
                        worst[step] = max(worst.get(step, 0), part)
    for step, part in worst.items():
        assert part > ATTAINED.get(f"{name}/{step}", ATTAINED.get(step, 0.99))
