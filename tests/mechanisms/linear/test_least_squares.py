"""Least squares in place of a run: when it is chosen, what it releases, and what either end costs."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from snugdp import Budget, Number, Schema, Simulation
from snugdp.accounting import composition, gaussian
from snugdp.accounting.objective.run import Kind, RunCost
from snugdp.core.guarantee import Cost
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.mechanisms.linear.base import Design
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.base import RowPass
from snugdp.tables.rows import Rows
from tests.effort import sampled

BUDGET = Budget(1, 1e-6)
SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-8, 8)}, target="y")
DESIGN = Design.of(SCHEMA)
ENOUGH = 100_000


def table(n: int, seed: int = 1, *, apart: float = 1.0) -> pl.DataFrame:
    """Errors are skewed: the mean of y is a - b/2 + 1."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, n)
    b = (1 - apart) * a + apart * rng.uniform(-1, 1, n)
    return pl.DataFrame({"a": a, "b": b, "y": a - 0.5 * b + rng.exponential(size=n)})


def fitted(frame: pl.DataFrame, seed: int = 1, **given: Any) -> Any:
    rows = Rows(frame, SCHEMA)
    outcome = WhitenedLine(DESIGN, BUDGET, intervals=False, **given).fit(Secret(rows), ReleaseContext(Simulation(seed)))
    return outcome.value, rows


def line(theta: Any) -> Any:
    found = SCHEMA.coefficients(theta)
    return np.array([*found.values, found.intercept])


def test_with_many_rows_it_is_the_mean_and_with_few_a_robust_line() -> None:
    fit, _ = fitted(table(ENOUGH))
    assert "lowest" in fit.released
    assert "tau" not in fit.released
    found = line(fit.theta)
    assert np.abs(found - [1, -0.5, 1]).max() < 6 / math.sqrt(ENOUGH / 3)
    few, _ = fitted(table(2000))
    assert "tau" in few.released
    assert few.noise is None


def test_neither_collinear_columns_nor_a_flat_target_end_in_least_squares() -> None:
    assert "tau" in fitted(table(ENOUGH, apart=1e-3))[0].released
    flat = table(ENOUGH).with_columns(y=pl.lit(3.0))
    assert "tau" in fitted(flat)[0].released
    assert "tau" in fitted(table(0))[0].released
    basis = ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0))
    same = table(ENOUGH).with_columns(b=pl.col("a"))
    fit, _ = fitted(same, basis=basis)
    assert "lowest" in fit.released, "what is not identified is not looked at"
    assert np.abs(line(fit.theta) - [0.5, 0, 1])[1] < 1e-9


def test_the_noise_it_tells_is_that_of_its_coefficients() -> None:
    frame = table(ENOUGH)
    fits = [fitted(frame, seed)[0] for seed in range(40)]
    thetas = np.array([fit.theta for fit in fits])
    seen = math.sqrt(thetas.var(axis=0, ddof=1).mean())
    assert 0.75 < seen / float(np.mean([fit.noise for fit in fits])) < 1.33


def test_a_table_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[str] = []
    original = Rows._gathered

    def counted(self: Rows, work: RowPass[Any]) -> Any:
        passes.append(type(work).__name__)
        return original(self, work)

    monkeypatch.setattr(Rows, "_gathered", counted)
    _, rows = fitted(table(ENOUGH))
    assert len(passes) == 1
    assert rows.moments() is not None


@pytest.mark.parametrize("beside", [Fraction(0), Fraction(1, 100)])
def test_either_end_costs_no_more_than_was_planned(beside: Fraction) -> None:
    """All Gaussian releases on the way to least squares together, by their exact curve, stay below the plan's."""
    method = WhitenedLine(DESIGN, BUDGET, beside, intervals=False)
    parts, other = method._planned, method._least_squares
    assert other is not None
    assert other.mu_squared == parts.run.run.m_squared <= parts.run.m**2
    centre = parts.looks.centre
    assert centre is not None
    spent = beside + centre.mu**2 + parts.whitening.gram**2 + other.squares**2 + other.mu_squared
    planned = method.plan().cost + Cost(mu_squared=beside)
    for epsilon in (-1.0, 0.0, 0.3, 1.0, 2.0):
        least = float(gaussian.delta_ball(spent, Fraction(epsilon)).mid())
        assert least <= planned.delta_at(epsilon)
    assert planned.fits(BUDGET)


def profile(m: float, epsilon: float) -> float:
    return float(stats.norm.cdf(m / 2 - epsilon / m) - math.exp(epsilon) * stats.norm.cdf(-m / 2 - epsilon / m))


@sampled(2)
@pytest.mark.parametrize("kind", ["class_t", "class_t_sharp"])
@pytest.mark.parametrize(("m", "kappa"), [(0.05, 0.1), (0.2, 0.5), (0.2, 0.01), (1.0, 0.3), (3.0, 4.0)])
def test_the_atom_of_a_run_is_above_a_gaussian_release_in_both_directions(kind: Kind, m: float, kappa: float) -> None:
    """Each direction of the atom by itself, beside nothing and beside a Gaussian part, at every epsilon."""
    run = RunCost(Fraction(m) ** 2, Fraction(kappa), kind)
    instead = math.sqrt(run.gaussian_instead)
    assert instead == pytest.approx(m)
    for side in (run.atom.add, run.atom.remove):
        one = composition.Atom(side, side)
        for beside in (0.0, 0.3):
            for epsilon in np.linspace(-6 * m, 6 * m, 13):
                bound = composition.delta(
                    epsilon=Fraction(epsilon), mu_squared=Fraction(beside) ** 2, failure=run.failure, atoms=(one,)
                )
                assert bound >= profile(math.hypot(instead, beside), float(epsilon)) - 1e-12


def test_what_is_not_proved_has_no_gaussian_release_in_its_place() -> None:
    for kind in ("logistic", "log_cosh", "sign_changing"):
        with pytest.raises(ValueError, match="class T alone"):
            _ = RunCost(Fraction(1, 16), Fraction(1, 2), kind).gaussian_instead
    with pytest.raises(ValueError, match="single rows"):
        _ = RunCost(Fraction(1, 16), Fraction(1, 2), "class_t", unit="person").gaussian_instead
