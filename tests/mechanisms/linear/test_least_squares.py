"""Least squares in place of a run: when it is chosen, what it releases, and what either end costs."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from snugdp import Budget, Category, LinearRegression, Number, Schema, Simulation
from snugdp.accounting import composition, gaussian
from snugdp.accounting.objective.run import Kind, RunCost
from snugdp.core.guarantee import Cost
from snugdp.estimators.methods.linear import METHODS as LINES
from snugdp.estimators.methods.linear import Options
from snugdp.estimators.sparse.models import _LINES as SELECTED
from snugdp.mechanisms.inference.line import WhitenedLine
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.adaptive import Adaptive
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.passes.base import RowPass
from snugdp.tables.rows import Rows
from tests.effort import sampled

BUDGET = Budget(1, 1e-6)
SCHEMA = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-8, 8)}, target="y")
DESIGN = Design.of(SCHEMA)
ENOUGH = 600_000
AUTO, BY_HAND = LINES["auto"], LINES["adaptive"]


def table(n: int, seed: int = 1, *, apart: float = 1.0) -> pl.DataFrame:
    """Errors are skewed: the mean of y is a - b/2 + 1."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, n)
    b = (1 - apart) * a + apart * rng.uniform(-1, 1, n)
    return pl.DataFrame({"a": a, "b": b, "y": a - 0.5 * b + rng.exponential(size=n)})


def of_width(columns: int) -> Design:
    return Design.of(Schema({**{f"x{i}": Number(0, 1) for i in range(columns)}, "y": Number(0, 1)}, target="y"))


METHODS: dict[str, Any] = {"whitened": partial(WhitenedLine, intervals=False), "adaptive": Adaptive}


def fitted(frame: pl.DataFrame, seed: int = 1, method: str = "whitened", **given: Any) -> Any:
    rows = Rows(frame, SCHEMA)
    outcome = METHODS[method](DESIGN, BUDGET, **given).fit(Secret(rows), ReleaseContext(Simulation(seed)))
    assert (outcome.certificate is None) == ("lowest" in outcome.value.released)
    return outcome.value, rows


def line(theta: Any) -> Any:
    found = SCHEMA.coefficients(theta)
    return np.array([*found.values, found.intercept])


@pytest.mark.parametrize("method", METHODS)
def test_with_many_rows_it_is_the_mean_and_with_few_a_robust_line(method: str) -> None:
    fit, _ = fitted(table(ENOUGH), method=method)
    assert "lowest" in fit.released
    assert "tau" not in fit.released
    found = line(fit.theta)
    assert np.abs(found - [1, -0.5, 1]).max() < 6 / math.sqrt(ENOUGH / 3)
    assert abs(fit.released["rows"] - ENOUGH) < 2000
    few, _ = fitted(table(2000), method=method)
    assert "tau" in few.released
    assert few.noise is None


@pytest.mark.parametrize("method", METHODS)
def test_neither_collinear_columns_nor_a_flat_target_end_in_least_squares(method: str) -> None:
    flat = table(ENOUGH).with_columns(y=pl.lit(3.0))
    for frame in (table(ENOUGH, apart=1e-3), flat, table(0), table(1)):
        assert "tau" in fitted(frame, method=method)[0].released


def test_levels_that_hold_all_rows_do_not_end_in_least_squares_as_the_plan_says() -> None:
    """They add up to the constant, so X'X has an eigenvalue of 0."""
    schema = Schema({"a": Number(-1, 1), "b": Category(["p", "q"]), "y": Number(-8, 8)}, target="y")
    frame = table(ENOUGH).with_columns(b=pl.when(pl.col("b") > 0).then(pl.lit("p")).otherwise(pl.lit("q")))
    for method in ("auto", "adaptive"):
        model = LinearRegression(schema=schema, method=method, noise=Simulation(1)).fit(frame)
        assert "tau" in model.details_
        assert "never does where columns add up to others" in str(model.plan_)
        assert np.abs(model.coef_[1] - 0.5) < 0.05


def test_what_is_not_identified_is_not_looked_at() -> None:
    basis = ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0))
    same = table(ENOUGH).with_columns(b=pl.col("a"))
    fit, _ = fitted(same, basis=basis)
    assert "lowest" in fit.released
    assert np.abs(line(fit.theta) - [0.5, 0, 1])[1] < 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_the_noise_it_tells_is_that_of_its_coefficients(method: str) -> None:
    frame = table(ENOUGH)
    fits = [fitted(frame, seed, method)[0] for seed in range(40)]
    thetas = np.array([fit.theta for fit in fits])
    seen = thetas.std(axis=0, ddof=1)
    told = np.mean([fit.noise for fit in fits], axis=0)
    assert np.abs(np.log(seen / told)).max() < 0.5, "of every coefficient, however different they are"


def test_a_rare_entry_does_not_end_in_least_squares_as_long_as_it_would_have_more_noise() -> None:
    """The sum over all rows would not notice."""
    flags = {share: table(ENOUGH).with_columns(b=np.arange(ENOUGH) < share * ENOUGH) for share in (0.02, 0.5)}
    ends = {share: "lowest" in fitted(frame)[0].released for share, frame in flags.items()}
    assert ends == {0.02: False, 0.5: True}


@pytest.mark.parametrize("method", METHODS)
def test_a_table_is_read_once(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[str] = []
    original = Rows._gathered

    def counted(self: Rows, work: RowPass[Any]) -> Any:
        passes.append(type(work).__name__)
        return original(self, work)

    monkeypatch.setattr(Rows, "_gathered", counted)
    _, rows = fitted(table(ENOUGH), method=method)
    assert len(passes) == 1
    assert rows.moments() is not None


@pytest.mark.parametrize("beside", [Fraction(0), Fraction(1, 100)])
def test_either_end_costs_no_more_than_was_planned(beside: Fraction) -> None:
    """All Gaussian releases on the way to least squares together, by their exact curve, stay below the plan's."""
    method = WhitenedLine(DESIGN, BUDGET, beside, intervals=False)
    parts, other = method._planned, method._least_squares
    assert other is not None
    assert other.mu_squared == parts.run.run.m_squared <= parts.run.m**2
    assert parts.place is not None
    spent = beside + parts.place.cost.mu_squared + parts.whitening.gram**2 + other.squares**2 + other.mu_squared
    compare(spent, method.plan().cost + Cost(mu_squared=beside))


@pytest.mark.parametrize("beside", [Fraction(0), Fraction(1, 100)])
def test_either_end_of_rows_that_are_not_whitened_costs_no_more_than_was_planned(beside: Fraction) -> None:
    method = Adaptive(DESIGN, BUDGET, beside)
    parts, other = method._parts, method._least_squares
    assert other is not None
    assert other.mu_squared == parts.runs[0].run.m_squared
    assert parts.centre is not None
    spent = beside + parts.centre.mu**2 + other.gram**2 + other.squares**2 + other.mu_squared
    compare(spent, method.plan().cost + Cost(mu_squared=beside))


def compare(spent: Fraction, planned: Cost) -> None:
    for epsilon in (-1.0, 0.0, 0.3, 1.0, 2.0):
        least = float(gaussian.delta_ball(spent, Fraction(epsilon)).mid())
        assert least <= planned.delta_at(epsilon)
    assert planned.fits(BUDGET)


def test_neither_rows_of_persons_nor_wide_ones_are_looked_at() -> None:
    persons = Design(DESIGN.row_map, weight=4)
    for design, looked in ((persons, False), (of_width(128), False), (of_width(127), True)):
        method = Adaptive(design, BUDGET)
        assert (method._least_squares is not None) is looked
        assert any(step.id == "squares" for step in method.plan().steps) is looked


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


def beyond(m: float, least: float, epsilon: float) -> float:
    """E (1 - e^(epsilon - l))+ on t > least alone, l = m t + m^2/2, t standard normal."""
    start = max(least, epsilon / m - m / 2)
    return float(stats.norm.sf(start) - math.exp(epsilon) * stats.norm.sf(start + m))


def pair(side: tuple[composition.Branch, ...], m: float, epsilon: float) -> float:
    """The same for the largest branch: both signs of t, a constant beside t, or levels."""
    levels = [(float(one.weight), float(one.shift)) for one in side if not one.mu_squared]
    lost = sum(weight * max(0.0, 1 - math.exp(epsilon - level)) for weight, level in levels)
    if len(levels) == len(side):
        return lost
    if not levels:
        return 2 * beyond(m, 0.0, epsilon)
    (_, level), start = levels[0], levels[0][1] / m - m / 2
    return float(stats.norm.cdf(start)) * max(0.0, 1 - math.exp(epsilon - level)) + beyond(m, start, epsilon)


@pytest.mark.parametrize("kind", ["class_t", "class_t_sharp"])
@pytest.mark.parametrize(("m", "kappa"), [(0.02, 0.01), (0.2, 0.5), (1.0, 1e-3), (3.0, 4.0), (0.2, 10.0)])
def test_the_pair_of_the_atom_is_above_a_gaussian_release(kind: Kind, m: float, kappa: float) -> None:
    """The pair itself, which an adaptive choice needs; a bound on delta adds its branches up."""
    run = RunCost(Fraction(m) ** 2, Fraction(kappa), kind)
    for side in (run.atom.add, run.atom.remove):
        for epsilon in [*np.linspace(-8 * m, 8 * m, 33), -30.0, -1.0, 0.0, 1.0]:
            bound = pair(side, m, float(epsilon)) + float(run.failure)
            assert bound >= profile(m, float(epsilon)) - 1e-13


def test_what_is_not_proved_has_no_gaussian_release_in_its_place() -> None:
    for kind in ("logistic", "log_cosh", "sign_changing"):
        with pytest.raises(ValueError, match="class T alone"):
            _ = RunCost(Fraction(1, 16), Fraction(1, 2), kind).gaussian_instead
    with pytest.raises(ValueError, match="single rows"):
        _ = RunCost(Fraction(1, 16), Fraction(1, 2), "class_t", unit="person").gaussian_instead


def test_levels_that_are_found_change_no_cost() -> None:
    """A plan has one level for each category; more than are looked at may be found, and fewer."""
    narrow, wide = (
        Design.of(Schema({**{f"x{i}": Number(0, 1) for i in range(n)}, "y": Number(0, 1)}, target="y"))
        for n in (4, 140)
    )
    given = {"beside": Fraction(1, 100), "found_rows": 1000.0}
    assert AUTO.after is not None
    assert BY_HAND.after is not None
    for entries in (5, 60, 141):
        costs = [AUTO.after(design, BUDGET, entries=entries, **given).plan().cost for design in (narrow, wide)]
        assert costs[0] == costs[1]
    by_hand = [BY_HAND.after(design, BUDGET, **given).plan().cost for design in (narrow, wide)]
    assert by_hand[0] == by_hand[1]
    for recipe in (SELECTED["auto"], SELECTED["adaptive"]):
        selected = [recipe.make(design, BUDGET, Options()).plan().cost for design in (narrow, wide)]
        assert selected[0] == selected[1]
