"""The exact privacy of whole fits on pairs of tables: what each would release, under the same released numbers."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from snugdp import Budget, MemoryLedger, NotPrivate, Released, Simulation
from snugdp.mechanisms.components import base, crossing, projector
from snugdp.mechanisms.components.base import Components, ComponentsView, Rank, Task, noisy_block, noisy_crossing
from snugdp.mechanisms.components.crossing import STAGES, AnalyzeGauss, Crossing, blocks_of, forecast_loss
from snugdp.mechanisms.components.projector import Dual, Projector
from snugdp.mechanisms.linear import noisy_sums
from snugdp.noise import Gaussian
from snugdp.numerics.rationals import root_above
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.layouts.points import MatrixSchema, MatrixSource
from snugdp.tables.passes.vectors.scatter import Scatter
from snugdp.tables.rows import Rows
from tests.effort import often, repeated, sampled
from tests.mechanisms.scripted import Scripted

Array = Any
P = 4
LAYOUT, PLANE = (MatrixSchema(tuple(f"x{i}" for i in range(p)), 1) for p in (P, 2))
MAKERS: dict[str, Callable[[Task], Any]] = {
    "gauss": AnalyzeGauss,
    "crossing": Crossing,
    "components": lambda task: Crossing(task, "components"),
    "projector": Projector,
    "dual": Dual,
}


def scatter(X: Array, moves: bool = False, layout: MatrixSchema = LAYOUT) -> Secret[Scatter]:
    return Secret(Scatter(Rows(MatrixSource(X, layout), layout, progress=False), moves))


def task(k: Any = 1, **options: Any) -> Task:
    return Task(LAYOUT, options.pop("budget", Budget(1, 1e-6)), Rank.of(k, P), **options)


def distance(method: Any, X: Array, other: Array, seed: int) -> tuple[Fraction, Components]:
    """The square of the exact Gaussian distance between all that is released on the two tables, and the fit."""
    moves = method.task.moves
    first = Scripted(seed=seed)
    one = method.fit(scatter(X, moves), ReleaseContext(first)).value
    second = Scripted(first.said)
    two = method.fit(scatter(other, moves), ReleaseContext(second)).value
    assert one.vectors.tolist() == two.vectors.tolist()  # all that is returned is a function of what is released
    assert (one.totals.tolist(), one.route, one.trace) == (two.totals.tolist(), two.route, two.trace)
    return first.distance_squared(second), one


def table(rng: np.random.Generator, n: int, lead: float = 1.0) -> Array:
    X = rng.normal(size=(n, P)) * [lead, 0.1, 0.1, 0.1]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def rows_to_add(rng: np.random.Generator) -> list[Array]:
    """Rows that should move a release most: along the leading direction, across the gap, in all directions alike."""
    across = np.array([1.0, 1.0, 0.0, 0.0]) / math.sqrt(2)
    return [np.eye(P)[0], np.eye(P)[1], across, np.full(P, 0.5), rng.normal(size=P), 100 * rng.normal(size=P)]


@sampled(12)
@repeated
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("moves", [False, True])
def test_no_row_moves_a_fit_further_than_it_costs(name: str, moves: bool) -> None:
    rng = np.random.default_rng(1)
    routes, worst = set(), 0.0
    for trial in range(4):
        X = table(rng, (4000, 40)[trial % 2], 1.0 if trial < 3 else 0.3)
        k: Any = (1, 2, "auto", 0.6)[trial % 4]
        method = MAKERS[name](task(k, moves=moves))
        cost = method.plan().cost
        for row in rows_to_add(rng)[trial % often(2, 1) :: often(2, 1)]:
            for pair in ((X, np.vstack([X, row])), (np.vstack([X, row]), X)):
                square, fit = distance(method, pair[0], pair[1], trial)
                routes.add(fit.route)
                assert square <= cost.mu_squared  # the certificates of these draws hold: delta is not needed
                worst = max(worst, float(square / cost.mu_squared))
    assert worst > 0.75
    wanted = {"gauss": {"gauss"}, "crossing": {"crossing"}, "components": {"crossing"}}.get(name, {"projector"})
    assert wanted <= routes


def test_the_exact_curve_is_below_the_budget_and_close_to_it() -> None:
    """Two tables of two rows and one of three: the hockey stick of a whole fit, at the budget's epsilon."""
    for name, best in (("gauss", 0.95), ("crossing", 0.9)):
        method = MAKERS[name](task(1, rows=3))
        closest = 0.0
        for row in (np.eye(P)[0], np.full(P, 0.5), np.array([0.6, 0.8, 0, 0])):
            square, _ = distance(method, np.eye(P)[:2], np.vstack([np.eye(P)[:2], row]), seed=3)
            mu = math.sqrt(square)
            delta = float(special.ndtr(mu / 2 - 1 / mu)) - math.e * float(special.ndtr(-mu / 2 - 1 / mu))
            assert square <= method.plan().cost.mu_squared
            assert delta <= 1e-6 * (1 + 1e-9)  # as far as floats tell
            closest = max(closest, mu / method.plan().cost.mu)
        assert closest > best


def moved_by(row: Array, release: Callable[[Secret[Scatter], Scripted], Any]) -> Fraction:
    """How far one row more moves a release, squared and in deviations."""
    sources = []
    for X in (np.zeros((1, P)), np.vstack([np.zeros((1, P)), row])):
        sources.append(Scripted(seed=1))
        release(scatter(X), sources[-1])
    return sources[0].distance_squared(sources[1])


@pytest.mark.parametrize("blocks", [2, 3, 4])
def test_what_crosses_blocks_moves_as_far_as_claimed(blocks: int) -> None:
    """The constant sqrt((w - 1)/(2 w)) is attained by a row with equal parts in all blocks, in any basis."""
    rng = np.random.default_rng(blocks)
    labels = np.arange(P) % blocks
    view, mu = ComponentsView(None, task().unit, P), Fraction(1, 3)
    worst = 0.0
    for _ in range(20):
        V = np.linalg.qr(rng.normal(size=(P, P)))[0]
        even = sum(V[:, int(np.argmax(labels == b))] for b in range(blocks)) / math.sqrt(blocks)
        for row in (even, rng.normal(size=P)):
            moved = moved_by(row, lambda data, noise, V=V: noisy_crossing(data, view, (V, labels), mu**2, noise))  # type: ignore[misc]
            worst = max(worst, math.sqrt(moved) / float(mu))
    assert 0.999 < worst <= 1


def test_a_smaller_constant_would_be_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same attack on mutants: noise for more blocks than there are, and off-diagonal noise too small."""
    across = np.array([1.0, 1.0, 0.0, 0.0]) / math.sqrt(2)
    X = table(np.random.default_rng(2), 3000)
    method = Crossing(task(1))
    monkeypatch.setattr(base, "root_above", lambda square: root_above(square) * Fraction(9, 10))
    square, fit = distance(method, X, np.vstack([X, across]), seed=5)
    assert fit.route == "crossing"
    assert square > method.plan().cost.mu_squared
    monkeypatch.undo()
    monkeypatch.setattr(noisy_sums, "off_diagonal", lambda law: Gaussian(law.sigma * Fraction(6, 10)))
    gauss = AnalyzeGauss(task(1))
    square, _ = distance(gauss, X, np.vstack([X, np.full(P, 0.5)]), seed=5)
    assert square > gauss.plan().cost.mu_squared


def test_a_block_moves_as_far_as_claimed_for_any_vectors() -> None:
    rng = np.random.default_rng(6)
    view = ComponentsView(None, task().unit, P)
    for k in (1, 2, 3):
        V = np.linalg.qr(rng.normal(size=(P, P)))[0][:, :k]
        for vectors in (V, 0.5 * V, V + 0.01 * rng.normal(size=V.shape)):
            for row in (vectors[:, 0] / np.linalg.norm(vectors[:, 0]), rng.normal(size=P)):
                assert moved_by(row, lambda data, noise, V=vectors: noisy_block(data, view, V, Fraction(1), noise)) <= 1  # type: ignore[misc]


@repeated
def test_the_noise_is_symmetric_with_half_the_variance_off_the_diagonal() -> None:
    """End to end: the law of what Analyze Gauss releases on a table of no rows."""
    method = AnalyzeGauss(task(P, rows=1))
    sd = 1 / math.sqrt(method.plan().cost.mu_squared)
    draws = []
    for seed in range(often(400, 1000)):
        noise = Scripted(seed=seed)
        method.fit(scatter(np.zeros((0, P))), ReleaseContext(noise))
        draws.append(np.concatenate([np.array(said, dtype=float) for said in noise.said]) / task().unit)
    released = np.array(draws) / sd
    assert np.abs(released.mean(axis=0)).max() < 0.15
    deviations = released.std(axis=0)
    assert np.abs(deviations[:P] - 1).max() < 0.1
    assert np.abs(deviations[P:] - math.sqrt(0.5)).max() < 0.07


@repeated
def test_a_crossing_has_half_the_variance_of_a_matrix() -> None:
    view, labels = ComponentsView(None, task().unit, P), blocks_of("subspace", P, 1)
    found = [
        noisy_crossing(scatter(np.zeros((0, P))), view, (np.eye(P), labels), Fraction(1), Simulation(s))
        for s in range(often(400, 800))
    ]
    crossings = np.array([matrix[0, 1:] for matrix, _ in found])
    assert found[0][1] == pytest.approx(0.5, rel=1e-6)
    assert np.abs(crossings.std(axis=0) - 0.5).max() < 0.05
    assert all((matrix[1:, 1:] == 0).all() for matrix, _ in found[:5])


def test_the_stages_end_in_analyze_gauss_when_nothing_stands_out() -> None:
    X = table(np.random.default_rng(7), 30, lead=0.1)
    noise = Scripted(seed=1)
    fit = Crossing(task(1, rows=30)).fit(scatter(X), ReleaseContext(noise)).value
    assert fit is not None
    assert fit.route == "gauss"
    shares = [(task().unit / sigma) ** 2 for _, sigma in noise.seen[::2]]  # of the diagonals
    whole = Crossing(task(1, rows=30)).plan().cost.mu_squared
    assert sum(shares) <= whole
    assert float(sum(shares) / whole) == pytest.approx(1, rel=1e-9)
    assert [float(sum(shares[: i + 1]) / whole) for i in range(5)] == pytest.approx([float(s) for s in STAGES])


def test_forecasts_prefer_crossings_where_gaps_are_large() -> None:
    labels = blocks_of("subspace", 4, 2)
    far, near = np.array([9000.0, 8000.0, 10.0, 0.0]), np.array([9.0, 8.0, 7.9, 0.0])
    early, late = STAGES[0], STAGES[-1]
    assert forecast_loss(far, labels, early, 0.05) / forecast_loss(far, labels, late, 0.05) == pytest.approx(
        1 / 1.9, rel=1e-2
    )
    assert forecast_loss(near, labels, early, 0.05) >= forecast_loss(near, labels, late, 0.05)
    with pytest.raises(ValueError, match="focus"):
        Crossing(task(1), "everything")


@sampled(3)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("X", [np.zeros((0, P)), np.full((3, P), np.nan), np.full((5, P), np.inf), np.zeros((9, P))])
def test_strange_tables_are_released_like_any_other(name: str, X: Array) -> None:
    for k in (1, 3, "auto", 0.5):
        for moves in (False, True):
            method = MAKERS[name](task(k, moves=moves, budget=Budget(0.01, 1e-9)))
            fit = method.fit(scatter(X, moves), ReleaseContext(Simulation(1))).value
            assert fit is not None
            assert np.isfinite(fit.vectors).all()
            assert np.allclose(fit.vectors.T @ fit.vectors, np.eye(fit.vectors.shape[1]), atol=1e-9)


@pytest.mark.parametrize("name", MAKERS)
def test_a_release_is_paid_for(name: str) -> None:
    method = MAKERS[name](task(1))
    ledger = MemoryLedger(1, 1e-6, "add_remove", composition="tight")
    outcome = method.fit(scatter(table(np.random.default_rng(8), 500)), ReleaseContext(ledger=ledger))
    assert isinstance(outcome, Released)
    assert ledger.spent == method.plan().cost
    assert isinstance(method.fit(scatter(np.eye(P)), ReleaseContext(Simulation(1))), NotPrivate)


def test_a_released_centre_is_where_the_second_pass_begins() -> None:
    X = np.full((5000, P), 0.4) + 0.05 * np.eye(P)[np.arange(5000) % P]
    method = AnalyzeGauss(task(1, moves=True, budget=Budget(4, 1e-6)))
    fit = method.fit(scatter(X, moves=True), ReleaseContext(Simulation(2))).value
    assert fit is not None
    assert fit.start.shift is not None
    assert np.allclose(fit.start.shift, X.mean(axis=0), atol=0.02)
    assert fit.start.count == pytest.approx(5000, abs=200)
    assert fit.trace < 100  # about the mean there is almost nothing left
    assert method.plan().theorem is crossing.GAUSS


# --- an audit end to end: the hockey stick on the worst neighbours, false certificates included ---

EPSILON, DELTA = 1.0, 0.2  # so large that a failing certificate is seen


def loss(first: Scripted, second: Scripted) -> float:
    """The logarithm of the ratio of densities of what was said, on the first table over the second."""
    total = 0.0
    for (mine, sigma), (yours, _), said in zip(first.seen, second.seen, first.said, strict=True):
        answers = said if isinstance(said, list) else [said]
        for a, b, c in zip(mine, yours, answers, strict=True):
            total += float(((c - b) ** 2 - (c - a) ** 2) / (2 * sigma**2))
    return total


def hockey_stick(method: Any, X: Any, other: Any, draws: int = often(100, 200)) -> tuple[float, float]:
    """An estimate of delta at epsilon from draws on the first table, and its standard error."""
    here, there = scatter(X, layout=PLANE), scatter(other, layout=PLANE)
    found = []
    for seed in range(draws):
        first = Scripted(seed=seed)
        method.fit(here, ReleaseContext(first))
        second = Scripted(first.said)
        method.fit(there, ReleaseContext(second))
        found.append(max(0.0, 1 - math.exp(EPSILON - loss(first, second))) if loss(first, second) > EPSILON else 0.0)
    return float(np.mean(found)), float(np.std(found) / math.sqrt(draws))


def neighbours() -> tuple[Any, Any]:
    """All but no gap; one row more, and the leading direction is the other one."""
    rows = np.vstack([np.tile(np.eye(2), (4, 1)), [[0.3, 0.0]]])
    return rows, np.vstack([rows, [[0.0, 1.0]]])


def plane() -> Task:
    return Task(PLANE, Budget(EPSILON, DELTA), Rank.of(1, 2), rows=8)


@sampled(3)
@repeated
@pytest.mark.parametrize("make", [Projector, Dual, Crossing])
def test_a_whole_fit_keeps_its_promise(make: Any) -> None:
    X, other = neighbours()
    delta, error = hockey_stick(make(plane()), X, other)
    assert delta <= DELTA + 3 * error
    assert delta > DELTA / 4  # a mechanism that says nothing would pass as well


@pytest.mark.slow
def test_a_test_without_a_margin_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projector, "margin", lambda sigma, failure: Fraction(0))
    X, other = neighbours()
    delta, error = hockey_stick(Projector(plane()), X, other, 200)
    assert delta > DELTA + 5 * error


def test_half_of_the_noise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Task, "mu_squared", lambda self, failure: Fraction(4))
    X, other = neighbours()
    delta, error = hockey_stick(Crossing(plane()), X, other)
    assert delta > DELTA + 5 * error
