"""Regression from noisy sums: exact sensitivities, the exact law on neighbours, robust post-processing, usefulness."""

import math
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from snugdp import Budget, Cost, MemoryLedger, Released, Simulation
from snugdp.mechanisms.linear import noisy_sums
from snugdp.mechanisms.linear.base import Design, Method
from snugdp.mechanisms.linear.noisy_sums import cross_law, gram_law, off_diagonal
from snugdp.mechanisms.linear.sufficient import (
    PATH,
    AdaSSP,
    FitUnits,
    NoisyDescent,
    NoisySpectrum,
    SufficientStatistics,
    Validation,
)
from snugdp.noise import Gaussian
from snugdp.numerics.rationals import root_above
from snugdp.release.context import ReleaseContext
from snugdp.tables.losses.losses import Huber
from snugdp.tables.passes.derivatives.glm import FixedGradient
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows
from tests.effort import often, repeated, sampled
from tests.mechanisms.scripted import Scripted, Table, hockey_stick, mu_squared, rows_of, run, schema_of, without_last

EPSILONS, DELTAS = (0.1, 0.5, 1.0, 4.0, 8.0), (1e-9, 1e-6, 1e-4, 1e-2)
STRANGE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, 1.0]


def tables(rng: np.random.Generator, entries: int, rows: int, size: float = 1.0) -> dict[str, list[Any]]:
    columns = {f"x{i}": (size * rng.normal(size=rows)).tolist() for i in range(entries)}
    return {**columns, "y": rng.uniform(-1.5, 1.5, rows).tolist()}


def one_row(x: list[float], y: float) -> Table:
    return {**{f"x{i}": [value] for i, value in enumerate(x)}, "y": [y]}


def every(epsilon: float, delta: float, design: Design) -> list[Method]:
    budget = Budget(epsilon, delta)
    return [AdaSSP(design, budget), SufficientStatistics(design, budget), NoisyDescent(design, budget, rows=9, steps=7)]


def test_roots_are_rounded_up_and_close() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        square = Fraction(int(rng.integers(1, 2**60)), int(rng.integers(1, 2**60))) * Fraction(4) ** int(
            rng.integers(-300, 300)
        )
        root = root_above(square)
        assert square <= root**2 <= square * (1 + Fraction(1, 2**45))
    for whole in (1, 2, 3, 2**40, 10**30):
        assert root_above(Fraction(whole) ** 2) == whole or root_above(Fraction(whole) ** 2) > whole
        law = Gaussian(Fraction(whole, 7))
        assert law.sigma**2 <= 2 * off_diagonal(law).sigma ** 2 <= law.sigma**2 * (1 + Fraction(1, 2**44))


@pytest.mark.parametrize("constant", [False, True])
def test_no_row_moves_the_statistics_further_than_claimed(constant: bool) -> None:
    """Exact integers: thousands of random, extreme and broken rows against the laws that are drawn from."""
    rng = np.random.default_rng(1)
    for entries, bits in ((1 + constant, 20), (2, 6), (5, 20), (8, 12)):
        design = Design(RowMap(entries, 1, 1, bits=bits, constant=constant))
        mu_gram, mu_cross = Fraction(1, 3), Fraction(2, 7)
        law, cross = gram_law(design, mu_gram), cross_law(design, mu_cross)
        off = off_diagonal(law)
        rows = rng.normal(size=(600, entries)) * 10.0 ** rng.uniform(-2, 2, (600, 1))
        axes = np.vstack([np.eye(entries), -np.eye(entries), np.ones((1, entries)) / math.sqrt(entries)])
        broken = np.array(STRANGE)[rng.integers(0, len(STRANGE), (200, entries))]
        X = np.vstack([rows, axes, broken])
        y = np.concatenate([rng.uniform(-3, 3, 600), np.ones(len(axes)), np.array(STRANGE)[rng.integers(0, 8, 200)]])
        worst = [Fraction(0), Fraction(0)]
        images, targets = design.row_map.integers(X, y)
        for t, w in zip(images.tolist(), targets.tolist(), strict=True):
            square, fourth = sum(a * a for a in t), sum(a**4 for a in t)
            moved = fourth / law.sigma**2 + Fraction(square**2 - fourth, 2) / off.sigma**2
            worst = [max(worst[0], moved), max(worst[1], square * w * w / cross.sigma**2)]
        assert worst[0] <= mu_gram
        assert worst[1] <= mu_cross
        assert worst[0] >= mu_gram * Fraction(9, 10)  # the bound is reached, up to the grid
        assert worst[1] >= mu_cross * Fraction(9, 10)


@pytest.mark.slow
def test_no_row_moves_a_gradient_further_than_claimed() -> None:
    rng = np.random.default_rng(2)
    schema = schema_of(3, intercept=True)
    mu = Fraction(1, 5)
    reached = Fraction(0)
    for k in range(300):
        theta = (rng.normal(size=4) * 10.0 ** rng.uniform(-3, 30 if k % 5 == 0 else 2)).tolist()
        work = FixedGradient(schema, theta, Huber(float(10 ** rng.uniform(-3, 1))), None)
        values = rng.normal(size=4) * 10 if k % 3 else np.array(STRANGE)[rng.integers(0, len(STRANGE), 4)]
        frame = pd.DataFrame([values], columns=["x0", "x1", "x2", "y"])
        cells = work.fold(work.empty(), nw.from_native(frame, eager_only=True)).cross()
        moved = sum(n * n for n in cells) / noisy_sums.gradient_law(work, mu).sigma ** 2
        assert moved <= mu
        reached = max(reached, moved)
    assert reached > mu * Fraction(9, 10)


@pytest.mark.slow
@repeated
def test_the_whole_release_stays_within_its_cost_on_random_neighbours() -> None:
    """Add and remove: the distance is the same in both orders, so each pair stands for both."""
    rng = np.random.default_rng(3)
    for k in range(often(8, 24)):
        entries = int(rng.integers(1, 5))
        schema = schema_of(entries, intercept=bool(k % 2))
        design = Design.of(schema)
        table = tables(rng, entries, int(rng.integers(1, 30)), size=float(10 ** rng.uniform(-1, 1)))
        if k % 4 == 0:
            table = {name: [*column[:-1], STRANGE[int(rng.integers(8))]] for name, column in table.items()}
        for method in every(float(rng.choice(EPSILONS)), 1e-6, design):
            square = mu_squared(method, table, without_last(table), schema, seed=k)
            assert 0 < square <= method.plan().cost.mu_squared


@sampled(12)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_exact_delta_of_the_worst_neighbours_is_the_claimed_one(epsilon: float, delta: float) -> None:
    schema = schema_of(2)
    for x in ([1.0, 1.0], [1.0, -1.0]):  # a full row: 1 over the root of 2 in both entries
        full, empty = one_row(x, -1.0), without_last(one_row(x, 1.0))
        for method in every(epsilon, delta, Design.of(schema)):
            for square in (mu_squared(method, full, empty, schema), mu_squared(method, empty, full, schema)):
                assert square <= method.plan().cost.mu_squared
                exact = hockey_stick(square, epsilon)
                assert 0.99 * delta < exact <= delta * (1 + 1e-9)  # attained: nothing is wasted either
            assert method.plan().cost.fits(Budget(epsilon, delta))


@pytest.mark.parametrize("part", ["off_diagonal", "gram_law", "cross_law", "gradient_law", "descent"])
def test_understated_noise_is_found(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, budget = schema_of(2), Budget(1, 1e-6)
    method: Method = SufficientStatistics(Design.of(schema), budget)
    if part == "descent":
        method, part = NoisyDescent(Design.of(schema), budget, rows=100, steps=5), "gradient_law"
    honest = getattr(noisy_sums, part)
    monkeypatch.setattr(noisy_sums, part, lambda *args: Gaussian(honest(*args).sigma * Fraction(8, 10)))
    square = mu_squared(method, one_row([1.0, 1.0], -1.0), without_last(one_row([1.0, 1.0], 1.0)), schema)
    assert square > method.plan().cost.mu_squared
    assert hockey_stick(square, 1.0) > 1.1e-6


def test_an_understated_sensitivity_of_the_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a clipped residual could not be negative and positive: half of the true bound."""
    honest = noisy_sums.gradient_law
    monkeypatch.setattr(noisy_sums, "gradient_law", lambda work, mu: Gaussian(honest(work, mu).sigma / 2))
    schema = schema_of(3)
    method = SufficientStatistics(Design.of(schema), Budget(4, 1e-6), refinements=5)
    full = one_row([1.0, 1.0, 1.0], -1.0)
    assert hockey_stick(mu_squared(method, full, without_last(full), schema), 4.0) > 1e-5


def test_noise_is_drawn_once_for_every_entry_of_the_upper_triangle() -> None:
    schema = schema_of(3, intercept=True)
    design = Design.of(schema)
    seen = Scripted()
    method = SufficientStatistics(design, Budget(1, 1e-6), refinements=3)
    run(method, tables(np.random.default_rng(4), 3, 9), schema, seen)
    assert [len(values) for values, _ in seen.seen] == [4, 6, 4, 4, 4, 4]
    sigma, off = seen.seen[0][1], seen.seen[1][1]
    assert sigma**2 <= 2 * off**2 < sigma**2 * Fraction(1_000_001, 1_000_000)


def test_shares_add_up_exactly_and_the_plan_says_so() -> None:
    design, budget = Design.of(schema_of(2)), Budget(1, 1e-6)
    whole = AdaSSP(design, budget).plan().cost.mu_squared
    for steps in (0, 1, 2, 7):
        method = SufficientStatistics(design, budget, refinements=steps)
        assert method.plan().cost == Cost(mu_squared=whole)
        assert ("gradient" in str(method.plan())) == (steps > 0)
        assert "linear-statistics/1" in str(method.plan())
    assert "ridge = 3" in str(AdaSSP(design, budget, ridge=3).plan())
    assert "clip = 0.25" in str(SufficientStatistics(design, budget).plan())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": Budget(1, 1e-6, "replace")}, "add_remove"),
        ({"budget": Budget(1)}, "delta"),
        ({"refinements": -1}, "refinements"),
        ({"refinements": True}, "refinements"),
        ({"refinements": 10**9}, "refinements"),
        ({"clip": 0}, "clip"),
        ({"clip": math.nan}, "clip"),
        ({"clip": 1e9}, "1e6"),
        ({"ridge": -1}, "ridge"),
        ({"ridge": math.inf}, "ridge"),
        ({"ridge": "much"}, "ridge"),
        ({"ridge": []}, "empty"),
        ({"ridge": [1, 2]}, "validation"),
        ({"ridge": [1, -2], "validation": ([[1.0, 1.0]], [1.0])}, "ridge"),
        ({"validation": 3}, "pair"),
        ({"validation": ([[1.0]], [1.0])}, "2 columns"),
        ({"validation": (np.empty((0, 2)), [])}, "2 columns"),
        ({"validation": ([[1.0, 1.0]], [1.0, 2.0])}, "2 columns"),
        ({"validation": ([[1.0, math.nan]], [1.0])}, "finite"),
        ({"validation": ([["a", "b"]], [1.0])}, "numbers"),
        ({"design": Design(RowMap(2, 1, 0))}, "target"),
        ({"design": Design(RowMap(100, Fraction(1, 64), 1, bits=25, constant=True))}, "too fine"),
    ],
)
def test_bad_proposals_are_refused_when_the_method_is_made(changes: dict[str, Any], message: str) -> None:
    given = {"design": Design.of(schema_of(2)), "budget": Budget(1, 1e-6), **changes}
    with pytest.raises(ValueError, match=message):
        SufficientStatistics(**given)


def test_half_a_refinement_is_refused() -> None:
    with pytest.raises(TypeError, match="refinements"):
        SufficientStatistics(Design.of(schema_of(2)), Budget(1, 1e-6), refinements=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
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
def test_bad_proposals_of_descent_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"design": Design.of(schema_of(2)), "budget": Budget(1, 1e-6), "rows": 100, **changes}
    with pytest.raises(error, match=message):
        NoisyDescent(**given)


def test_adassp_refuses_bad_proposals() -> None:
    design = Design.of(schema_of(2))
    for budget, ridge, message in (
        (Budget(1, 1e-6, "replace"), None, "add_remove"),
        (Budget(1), None, "delta"),
        (Budget(1, 1e-6), -1, "ridge"),
        (Budget(1, 1e-6), math.nan, "ridge"),
    ):
        with pytest.raises(ValueError, match=message):
            AdaSSP(design, budget, ridge=ridge)
    with pytest.raises(ValueError, match="rows"):
        AdaSSP(design, Budget(1, 1e-6)).forecast(0)


def test_a_table_of_another_schema_is_refused_before_the_charge() -> None:
    ledger = MemoryLedger(10, 1e-3, "add_remove", composition="tight")
    other = rows_of(tables(np.random.default_rng(0), 2, 5), schema_of(2, intercept=True))
    for method in every(1.0, 1e-6, Design.of(schema_of(2))):
        with pytest.raises(ValueError, match="another schema"):
            method.fit(other, ReleaseContext(ledger=ledger))
    assert ledger.spent == Cost()


def test_a_release_is_paid_for_and_finite() -> None:
    schema = schema_of(3, intercept=True)
    table = tables(np.random.default_rng(6), 3, 50)
    for method in every(1.0, 1e-6, Design.of(schema)):
        ledger = MemoryLedger(1, 1e-6, "add_remove", composition="tight")
        outcome = method.fit(rows_of(table, schema), ReleaseContext(ledger=ledger))
        assert isinstance(outcome, Released)
        assert ledger.spent == method.plan().cost
        assert outcome.value.theta.shape == (4,)
        assert np.isfinite(outcome.value.theta).all()
        assert (outcome.value.noise is None) == isinstance(method, NoisyDescent)
        assert outcome.value.noise is None or (np.asarray(outcome.value.noise) > 0).all()


@pytest.mark.slow
@sampled(4)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 50.0])
def test_strange_tables_and_hopeless_budgets_give_finite_numbers(epsilon: float) -> None:
    rng = np.random.default_rng(7)
    schema = schema_of(3)
    design, budget = Design.of(schema), Budget(epsilon, 1e-9)
    strange = {name: [STRANGE[int(k)] for k in rng.integers(0, 8, 40)] for name in ("x0", "x1", "x2", "y")}
    zero = {name: [0.0] * 5 for name in strange}
    empty: dict[str, list[Any]] = {name: [] for name in strange}
    for table in (strange, zero, empty):
        for method in (
            AdaSSP(design, budget),
            AdaSSP(design, budget, ridge=0),
            SufficientStatistics(design, budget),
            SufficientStatistics(design, budget, refinements=4, ridge=0, clip=1e6),
            SufficientStatistics(design, budget, validation=(np.eye(3), np.ones(3))),
            SufficientStatistics(design, budget, ridge=[0, 1e100], validation=(1e100 * np.eye(3), np.ones(3))),
            NoisyDescent(design, budget, rows=1, steps=20),
            NoisyDescent(design, budget, rows=1, steps=20, rate=100),
        ):
            fit = run(method, table, schema, Scripted(seed=1))
            assert np.isfinite(fit.theta).all()
            assert all(math.isfinite(value) for value in fit.released.values())
            assert np.isfinite(run(method, table, schema, Scripted()).theta).all()  # a released matrix of zeros


def test_a_small_norm_is_nothing_special() -> None:
    schema = schema_of(2, norm=1e-5)
    for method in every(1.0, 1e-6, Design.of(schema)):
        fit = run(method, tables(np.random.default_rng(8), 2, 20), schema, Scripted(seed=3))
        assert np.isfinite(fit.theta).all()


def test_an_indefinite_matrix_is_projected() -> None:
    spectrum = NoisySpectrum.of([[2.0, 0.0], [0.0, -3.0]])
    assert spectrum.lowest == -3.0
    assert spectrum.solve(np.array([4.0, 4.0]), 0.0).tolist() == [2.0, 0.0]
    assert spectrum.path(np.array([4.0, 4.0]), [0.0, 2.0]).tolist() == [[2.0, 1.0], [0.0, 2.0]]


def synthetic(rows: int = 20_000, columns: int = 3) -> tuple[dict[str, list[Any]], Any, Any]:
    rng = np.random.default_rng(9)
    X = rng.uniform(-1, 1, (rows, columns))
    theta = np.array([0.5, -0.3, 0.2][:columns])
    y = X @ theta + 0.05 * rng.normal(size=rows)
    table = {**{f"x{i}": X[:, i].tolist() for i in range(columns)}, "y": y.tolist()}
    return table, X / math.sqrt(columns), theta * math.sqrt(columns)


def test_much_data_and_little_noise_find_the_truth() -> None:
    schema = schema_of(3)
    design = Design.of(schema)
    table, X, theta = synthetic()
    budget = Budget(4, 1e-6)
    for method in (
        AdaSSP(design, budget),
        SufficientStatistics(design, budget),
        SufficientStatistics(design, budget, refinements=0),
        SufficientStatistics(design, budget, validation=(X[:200], X[:200] @ theta + np.tile([0.05, -0.05], 100))),
    ):
        fit = run(method, table, schema, Scripted(seed=5))
        assert np.abs(fit.theta - theta).max() < 0.03
        assert fit.noise is not None
        assert np.max(fit.noise) < 0.02
        assert np.max(fit.noise) < 2 * method.forecast(20_000 // 3).noise


def test_reported_noise_is_that_of_many_runs() -> None:
    schema = schema_of(3)
    table, _, _ = synthetic(3000)
    rows = rows_of(table, schema)
    for method in (
        AdaSSP(Design.of(schema), Budget(1, 1e-6), ridge=40),
        SufficientStatistics(Design.of(schema), Budget(1, 1e-6), clip=1),
    ):
        fits = [method.fit(rows, ReleaseContext(Simulation(k))).value for k in range(60)]
        thetas = np.array([fit.theta for fit in fits if fit is not None])
        told = np.mean(np.array([fit.noise for fit in fits if fit is not None]), axis=0)
        assert told == pytest.approx(thetas.std(axis=0), rel=0.4)


def test_validation_chooses_on_the_grid_with_one_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(3)
    design = Design.of(schema)
    table, X, theta = synthetic(4000)
    public = (X[:300], X[:300] @ theta + 0.01)
    calls = []
    honest = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: calls.append(1) or honest(matrix))  # type: ignore[func-returns-value]
    grid = [0.0, 1.0, 10.0, 1e4]
    method = SufficientStatistics(design, Budget(1, 1e-6), ridge=grid, validation=public)
    fit = run(method, table, schema, Scripted(seed=2))
    assert calls == [1]
    unit = FitUnits.of(design).x ** 2
    assert any(fit.released["ridge"] == pytest.approx(value * 1.0, abs=1e-9) for value in grid)
    assert unit == pytest.approx(1.0, rel=1e-5)
    assert 1e-6 <= fit.released["clip"] <= 1.0
    free = SufficientStatistics(design, Budget(1, 1e-6), validation=public)
    assert free.plan().proposal == {"refinements": 2}
    assert len(PATH) == 61
    errors = Validation.of(public, design).errors(np.column_stack([theta, 0 * theta, theta * np.inf]))
    assert errors[0] == pytest.approx(0.01)
    assert errors[2] == np.inf


def test_wider_targets_need_no_special_care() -> None:
    """A design with other bounds than 1: the same answer in other units."""
    design = Design(RowMap(2, Fraction(1, 8), Fraction(3), bits=16))
    units = FitUnits.of(design)
    assert units.x == pytest.approx(1 / 8, rel=1e-4)
    assert units.y == pytest.approx(3, rel=1e-4)
    forecast, plain = (
        AdaSSP(each, Budget(1, 1e-6)).forecast(10_000) for each in (design, Design(RowMap(2, 1, 1, bits=16)))
    )
    assert forecast.noise == pytest.approx(24 * plain.noise, rel=1e-3)
    assert forecast.excess == pytest.approx(9 * plain.excess, rel=1e-3)


# --- gradient descent ---


@pytest.mark.slow
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
        table = tables(rng, 2, int(rng.integers(1, 20)))
        if k % 3 == 0:
            table = {name: [*column[:-1], STRANGE[int(rng.integers(8))]] for name, column in table.items()}
        assert 0 <= mu_squared(method, table, without_last(table), schema, seed=k) <= method.plan().cost.mu_squared


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


def test_rows_kept_in_memory_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    for bits, intercept in ((None, True), (3, False), (12, True)):
        schema = schema_of(2, intercept=intercept)
        table = {name: [*column, *STRANGE] for name, column in tables(rng, 2, 9000).items()}
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


def test_descent_finds_the_truth_and_the_forecast_is_about_right() -> None:
    schema = schema_of(2)
    table, _, theta = synthetic(3000, 2)
    rows = rows_of(table, schema)
    method = NoisyDescent(Design.of(schema), Budget(1, 1e-6), rows=3000, steps=20, clip=1, rate=0.5)
    fits = [method.fit(rows, ReleaseContext(Simulation(k))).value for k in range(25)]
    thetas = np.array([fit.theta for fit in fits if fit is not None])
    assert np.abs(thetas.mean(axis=0) - theta).max() < 0.05
    spread = float(np.sqrt(thetas.var(axis=0).mean()))
    # the rows fill a square, so they have a third of the squared length of full rows: steps are a third as long
    assert 0.3 * spread < method.forecast(1000).noise < 3 * spread
    assert method.forecast(2000).excess < method.forecast(1000).excess * 2
