"""Noisy gradient descent: the exact law of the whole path on neighbours, bad proposals, usefulness."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from snugdp import Budget, Cost, MemoryLedger, Released, Simulation
from snugdp.mechanisms.linear import noisy_sums
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.linear.descent import NoisyDescent
from snugdp.noise import Gaussian
from snugdp.release.context import ReleaseContext
from snugdp.tables.rows import Rows
from tests.mechanisms.scripted import Scripted, Table, hockey_stick, mu_squared, rows_of, run, schema_of, without_last

STRANGE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, 1.0]


def full_row(y: float) -> Table:
    return {"x0": [1.0], "x1": [-1.0], "y": [y]}


def uniform(rows: int, seed: int = 0) -> tuple[dict[str, list[Any]], Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 2))
    theta = np.array([0.5, -0.3])
    y = X @ theta + 0.05 * rng.normal(size=rows)
    return {"x0": X[:, 0].tolist(), "x1": X[:, 1].tolist(), "y": y.tolist()}, theta * math.sqrt(2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("steps", [1, 7])
def test_the_exact_delta_of_the_worst_neighbours_is_the_claimed_one(epsilon: float, delta: float, steps: int) -> None:
    schema = schema_of(2)
    method = NoisyDescent(Design.of(schema), Budget(epsilon, delta), rows=100, steps=steps)
    full, empty = full_row(-1.0), without_last(full_row(1.0))
    for square in (mu_squared(method, full, empty, schema), mu_squared(method, empty, full, schema)):
        assert square <= method.plan().cost.mu_squared
        assert 0.99 * delta < hockey_stick(square, epsilon) <= delta * (1 + 1e-9)
    assert method.plan().cost.fits(Budget(epsilon, delta))


def test_the_path_stays_within_its_cost_on_random_neighbours() -> None:
    rng = np.random.default_rng(1)
    for k in range(25):
        schema = schema_of(2, intercept=bool(k % 2))
        method = NoisyDescent(
            Design.of(schema),
            Budget(float(rng.choice([0.1, 1.0, 8.0])), 1e-6),
            rows=int(rng.integers(1, 1000)),
            steps=int(rng.integers(1, 12)),
            clip=float(10 ** rng.uniform(-3, 1)),
            rate=float(10 ** rng.uniform(-2, 2)),
        )
        table, _ = uniform(int(rng.integers(1, 20)), seed=k)
        if k % 3 == 0:
            table = {name: [*column[:-1], STRANGE[int(rng.integers(8))]] for name, column in table.items()}
        assert 0 <= mu_squared(method, table, without_last(table), schema, seed=k) <= method.plan().cost.mu_squared


@pytest.mark.parametrize("factor", [Fraction(8, 10), Fraction(1, 2)])
def test_understated_noise_is_found(factor: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = noisy_sums.gradient_law
    monkeypatch.setattr(noisy_sums, "gradient_law", lambda work, mu: Gaussian(honest(work, mu).sigma * factor))
    schema = schema_of(2)
    method = NoisyDescent(Design.of(schema), Budget(1, 1e-6), rows=100, steps=5)
    assert hockey_stick(mu_squared(method, full_row(1.0), without_last(full_row(1.0)), schema), 1.0) > 1e-5


def test_the_cost_does_not_depend_on_the_number_of_steps_or_the_guess() -> None:
    design, budget = Design.of(schema_of(2)), Budget(1, 1e-6)
    costs = {
        NoisyDescent(design, budget, rows=rows, steps=steps).plan().cost.mu_squared
        for rows in (1, 10**9)
        for steps in (1, 3, 100)
    }
    assert len(costs) == 1
    text = str(NoisyDescent(design, budget, rows=5000).plan())
    assert "steps = 100" in text
    assert text.endswith("linear-descent/1")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"budget": Budget(1, 1e-6, "replace")}, ValueError, "add_remove"),
        ({"budget": Budget(1)}, ValueError, "delta"),
        ({"rows": 0}, ValueError, "rows"),
        ({"rows": 1.5}, TypeError, "rows"),
        ({"steps": 0}, ValueError, "steps"),
        ({"steps": 10**6}, ValueError, "steps"),
        ({"steps": True}, ValueError, "steps"),
        ({"clip": -1}, ValueError, "clip"),
        ({"clip": 1e-9}, ValueError, "1e-6"),
        ({"rate": 0}, ValueError, "rate"),
        ({"rate": math.inf}, ValueError, "rate"),
        ({"rate": 1e6}, ValueError, "rate"),
    ],
)
def test_bad_proposals_are_refused_when_the_method_is_made(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"design": Design.of(schema_of(2)), "budget": Budget(1, 1e-6), "rows": 100, **changes}
    with pytest.raises(error, match=message):
        NoisyDescent(**given)


def test_a_table_of_another_schema_is_refused_before_the_charge() -> None:
    ledger = MemoryLedger(10, 1e-3, "add_remove")
    method = NoisyDescent(Design.of(schema_of(2), bits=10), Budget(1, 1e-6), rows=10)
    with pytest.raises(ValueError, match="another schema"):
        method.fit(rows_of(uniform(5)[0], schema_of(2)), ReleaseContext(ledger=ledger))
    assert ledger.spent == Cost()


def test_a_release_is_paid_for() -> None:
    schema = schema_of(2)
    method = NoisyDescent(Design.of(schema), Budget(1, 1e-6), rows=50, steps=3, rate="1/4")
    ledger = MemoryLedger(1, 1e-6, "add_remove")
    outcome = method.fit(rows_of(uniform(50)[0], schema), ReleaseContext(ledger=ledger))
    assert isinstance(outcome, Released)
    assert ledger.spent == method.plan().cost
    assert np.isfinite(outcome.value.theta).all()


@pytest.mark.parametrize("rate", [0.25, 100])
def test_strange_tables_give_finite_numbers(rate: float) -> None:
    schema = schema_of(2)
    strange = dict.fromkeys(("x0", "x1", "y"), STRANGE)
    empty: dict[str, list[Any]] = {name: [] for name in strange}
    for table in (strange, empty, uniform(300)[0]):
        for epsilon in (1e-5, 50):
            method = NoisyDescent(Design.of(schema), Budget(epsilon, 1e-9), rows=1, steps=20, rate=rate)
            assert np.isfinite(run(method, table, schema, Scripted(seed=2)).theta).all()


def test_rows_kept_in_memory_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    for bits, intercept in ((None, True), (3, False), (12, True)):
        schema = schema_of(2, intercept=intercept)
        table = {name: [*column, *STRANGE] for name, column in uniform(9000)[0].items()}
        theta = rng.normal(size=2 + intercept).tolist()
        work = noisy_sums.Gradients(schema, bits).at(theta, Fraction(1, 10))
        sums = []
        for keep in (True, False):
            rows = Rows(pd.DataFrame(table), schema, bits)
            if keep:
                assert rows.images() is not None
                monkeypatch.setattr("snugdp.tables.rows.gather", None)  # from memory, or not at all
            sums.append(rows.state(work))
            monkeypatch.undo()
        assert sums[0].values() == sums[1].values()


def test_it_finds_the_truth_and_the_forecast_is_about_right() -> None:
    schema = schema_of(2)
    table, theta = uniform(3000)
    rows = rows_of(table, schema)
    method = NoisyDescent(Design.of(schema), Budget(1, 1e-6), rows=3000, steps=20, clip=1, rate=0.5)
    fits = [method.fit(rows, ReleaseContext(Simulation(k))).value for k in range(25)]
    thetas = np.array([fit.theta for fit in fits if fit is not None])
    assert np.abs(thetas.mean(axis=0) - theta).max() < 0.05
    spread = float(np.sqrt(thetas.var(axis=0).mean()))
    # the rows fill a square, so they have a third of the squared length of full rows: steps are a third as long
    assert 0.3 * spread < method.forecast(1000).noise < 3 * spread
    assert method.forecast(2000).excess < method.forecast(1000).excess * 2
