"""Fits by objective perturbation: exact parameters, the law of what comes out, scales in whole numbers, refusals."""

import math
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from snugdp import Budget, MemoryLedger, Simulation
from snugdp.accounting.objective.run import critical_loss
from snugdp.mechanisms.linear.base import Design
from snugdp.mechanisms.objective.perturbation import Perturbation, m_squared
from snugdp.mechanisms.objective.robust import ObjectivePerturbation, Rule
from snugdp.mechanisms.objective.scale import MeanSize, SizeHistogram
from snugdp.noise import Gaussian
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.tables.losses.losses import Huber, LogCosh, PseudoHuber
from snugdp.tables.passes.base import Sums
from snugdp.tables.passes.vectors.distances import ResidualHistogramPass, ScalePass
from snugdp.tables.rows import Rows
from snugdp.tables.schema.schema import Number, Schema
from tests.accounting.objective.perturbed import Law
from tests.effort import sampled
from tests.mechanisms.objective.tables import BUDGET, DESIGN, LINE, LINE_DESIGN, SCHEMA

RULES: list[Rule] = ["fixed", "scale", "two_stage"]
LOSSES = ["logcosh", "pseudo_huber", "huber"]


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (2, n))
    return pd.DataFrame({"a": a, "b": b, "y": 0.5 * a - 0.3 * b + 0.1 + 0.1 * rng.standard_normal(n)})


def private(n: int, schema: Schema = SCHEMA) -> Secret[Rows]:
    return Secret(Rows(frame(n), schema))


# --- one run ---


@pytest.mark.parametrize("design", [DESIGN, LINE_DESIGN], ids=["with intercept", "without"])
@pytest.mark.parametrize("tau", ["0.2", "1/7", "1000"])
def test_sigma_is_rounded_up_and_its_cost_is_exact(design: Design, tau: str) -> None:
    run = Perturbation(design, LogCosh(tau), Fraction(229, 1000), Fraction(7, 2))
    square = design.x_squared * Fraction(tau) ** 2 / run.sigma**2
    assert square == m_squared(design, run.m) == run.run.m_squared  # whatever tau is
    assert run.m**2 * (1 - Fraction(1, 2**40)) <= square <= run.m**2
    assert run.kappa == design.x_squared / run.ridge
    (atom,) = run.cost.atoms
    assert [branch.mu_squared for branch in atom.add] == [square, square]
    assert atom.remove[1].shift == max(run.kappa, 2 * run.kappa - square / 2)


def test_huber_always_pays_for_the_determinant() -> None:
    run = Perturbation(DESIGN, Huber("0.2"), Fraction(1, 5), Fraction(4))
    (atom,) = run.cost.atoms
    beta = atom.remove[0].shift
    assert float(beta) == pytest.approx(math.log1p(0.5), rel=1e-12)
    assert beta >= Fraction(math.log1p(0.5)) * (1 - Fraction(1, 2**50))
    assert Perturbation(DESIGN, PseudoHuber("0.2"), run.m, run.ridge, "sign_changing").cost == run.cost


def test_cost_knows_neither_tau_nor_centre_but_the_ridge() -> None:
    run = Perturbation(DESIGN, LogCosh("0.2"), Fraction(1, 5), Fraction(6))
    assert replace(run, loss=LogCosh("0.9")).cost == run.cost
    assert replace(run, ridge=Fraction(5)).cost != run.cost


@pytest.mark.slow
@sampled(4)
@pytest.mark.parametrize("loss", [LogCosh("0.3"), PseudoHuber("0.3"), Huber("0.3")], ids=LOSSES)
def test_what_comes_out_has_the_law_of_the_theorem(loss: Any) -> None:
    """The b that a released coefficient belongs to is normal, with the sigma that is paid for and no smaller one."""
    table = pd.DataFrame({"a": [1.0, -1.0, 0.5], "y": [0.8, 0.3, -0.6]})
    run = Perturbation(LINE_DESIGN, loss, Fraction(1, 2), Fraction(2))
    rows, noise, centre = Secret(Rows(table, LINE)), Simulation(7), (Fraction(1, 4),)
    kind = dict(zip((LogCosh, PseudoHuber, Huber), LOSSES, strict=True))[type(loss)]
    law = Law(table["a"].tolist(), table["y"].tolist(), kind, 0.3, 2.0, float(run.sigma), 0.25)
    drawn = [run.draw(rows, noise, centre) for _ in range(300)]
    assert all((value / Fraction(2) ** run.grid).denominator == 1 for (value,) in drawn)
    tilts = np.array([law.tilt(float(value)) for (value,) in drawn])
    assert abs(tilts.mean()) < 0.2
    assert 0.8 < (tilts**2).mean() < 1.25
    smaller = replace(law, sigma=law.sigma * 0.75)
    assert np.mean([smaller.tilt(float(value)) ** 2 for (value,) in drawn]) > 1.25
    assert np.std([float(value) for (value,) in drawn]) < run.noise_at_most


def test_rows_of_another_design_are_refused_like_a_private_failure() -> None:
    method = ObjectivePerturbation(LINE_DESIGN, BUDGET)
    assert method.fit(private(5), ReleaseContext(budget=BUDGET)).refused
    with pytest.raises(PrivateComputationError):
        method.fit(private(5), ReleaseContext(Simulation(1)))
    with pytest.raises(PrivateComputationError):
        SizeHistogram(LINE_DESIGN, Fraction(1)).draw(private(5), Simulation(1))


# --- the rules ---


@sampled(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (8, 1e-2)])
def test_the_plan_fits_and_uses_up_the_budget(rule: Rule, loss: str, epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    cost = ObjectivePerturbation(DESIGN, budget, rule=rule, loss=loss).plan().cost
    assert cost.fits(budget)
    assert cost.delta_at(epsilon) > 0.999999 * delta
    assert len(cost.atoms) == (2 if rule == "two_stage" else 1)
    assert (cost.mu_squared > 0) == (rule != "fixed")


@sampled(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", LOSSES)
def test_fits_recover_a_line(rule: Rule, loss: str) -> None:
    method = ObjectivePerturbation(DESIGN, BUDGET, rule=rule, loss=loss)
    outcome = method.fit(private(4000), ReleaseContext(Simulation(3)))
    fit = outcome.value
    assert fit is not None
    assert np.allclose(fit.theta * [0.5**0.5, 0.5**0.5, 1], [0.5, -0.3, 0.1], atol=0.05)
    assert fit.noise is None
    assert {"tau", "ridge", "sigma", "m", "noise_at_most"} <= set(fit.released)
    assert ("scale" in fit.released) == (rule != "fixed")
    assert (outcome.certificate is None) == (rule == "fixed")
    assert outcome.cost == method.plan().cost


def test_a_release_is_charged_and_on_the_grid() -> None:
    ledger = MemoryLedger(1, 1e-6)
    method = ObjectivePerturbation(DESIGN, BUDGET, rule="two_stage")
    outcome = method.fit(private(300), ReleaseContext(ledger=ledger))
    assert not outcome.refused
    assert outcome.certificate.centre is not None
    with pytest.raises(Exception, match="budget"):
        method.fit(private(300), ReleaseContext(ledger=ledger))


def test_the_fixed_rule_depends_on_public_numbers_only() -> None:
    plan = ObjectivePerturbation(DESIGN, BUDGET).plan()
    assert plan.proposal["tau"] == pytest.approx(0.2, abs=1e-3)
    assert plan.proposal["ridge"] == pytest.approx(float(DESIGN.x_squared) / (0.5 + 0.2290869427**2 / 4), rel=1e-6)
    assert ObjectivePerturbation(DESIGN, BUDGET, tau="0.5").plan().proposal["tau"] == 0.5


def test_a_looser_bound_on_the_target_changes_little_with_a_private_scale() -> None:
    loose = Schema({"a": Number(-1, 1), "b": Number(-1, 1), "y": Number(-8, 8)}, target="y")
    taus = {}
    for name, schema in (("tight", SCHEMA), ("loose", loose)):
        method = ObjectivePerturbation(Design.of(schema), BUDGET, rule="scale")
        fit = method.fit(private(4000, schema), ReleaseContext(Simulation(5))).value
        assert fit is not None
        taus[name] = fit.released["tau"] * (8 if name == "loose" else 1)
    assert taus["loose"] == pytest.approx(taus["tight"], rel=0.5)


def test_forecasts_fall_with_rows_and_budget() -> None:
    for rule in RULES:
        method = ObjectivePerturbation(DESIGN, BUDGET, rule=rule)
        few, many = method.forecast(1000), method.forecast(100_000)
        assert many.noise < few.noise / 50
        assert many.excess == pytest.approx(many.noise**2 * float(DESIGN.x_squared))
        assert ObjectivePerturbation(DESIGN, Budget(4, 1e-6), rule=rule).forecast(1000).noise < few.noise


def test_the_forecast_is_about_right() -> None:
    method = ObjectivePerturbation(DESIGN, BUDGET)
    rows, noise = private(2000), Simulation(11)
    thetas = [fit.theta for _ in range(30) if (fit := method.fit(rows, ReleaseContext(noise)).value) is not None]
    spread = float(np.sqrt(np.var(np.array(thetas), axis=0).mean()))
    assert 0.3 < spread / method.forecast(2000).noise < 3


# --- limits and bad numbers ---


@sampled(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_a_ridge_below_the_limit_is_refused_and_the_limit_is_named(rule: Rule, epsilon: float) -> None:
    budget = Budget(epsilon, 1e-6)
    with pytest.raises(ValueError, match="ridge must be at least") as refused:
        ObjectivePerturbation(DESIGN, budget, rule=rule, ridge=1e-3)
    named = str(refused.value).split("at least ")[1].split(" ")[0]
    assert ObjectivePerturbation(DESIGN, budget, rule=rule, ridge=named).plan().cost.fits(budget)
    with pytest.raises(ValueError, match="ridge must be at least"):
        ObjectivePerturbation(DESIGN, budget, rule=rule, ridge=Fraction(named) * Fraction(999_999, 1_000_000))
    general = ObjectivePerturbation(DESIGN, budget, rule=rule, ridge=Fraction(named) * Fraction(9, 10), general=True)
    assert general.plan().cost.fits(budget)
    assert general.plan().proposal["m"] < ObjectivePerturbation(DESIGN, budget, rule=rule).plan().proposal["m"]


def test_the_alone_limit_is_where_the_critical_loss_meets_epsilon() -> None:
    method = ObjectivePerturbation(DESIGN, BUDGET)
    run = Perturbation(
        DESIGN, LogCosh("0.2"), Fraction(method.plan().proposal["m"]), Fraction(method.plan().proposal["ridge"])
    )
    assert float(critical_loss("class_t", run.m**2, run.kappa)) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"budget": Budget(1, 1e-6, "replace")}, "add_remove"),
        ({"budget": Budget(1)}, "delta > 0"),
        ({"rule": "best"}, "rule must be one of"),
        ({"loss": "square"}, "loss must be one of"),
        ({"tau": 0}, "tau"),
        ({"tau": 1e9}, "tau must be between"),
        ({"tau": 0.1, "rule": "scale"}, "chooses tau itself"),
        ({"ridge": -1}, "ridge"),
        ({"ridge": 0.1, "loss": "huber"}, "ridge well above"),
    ],
)
def test_bad_numbers_are_refused_when_the_method_is_made(change: dict[str, Any], says: str) -> None:
    options = {"budget": BUDGET, **change}
    with pytest.raises(ValueError, match=says):
        ObjectivePerturbation(DESIGN, options.pop("budget"), **options)


# --- private scales ---


def by_hand(schema: Schema, rows: pd.DataFrame, theta: tuple[Fraction, ...]) -> list[Fraction]:
    """|y - x . theta| in cells, with fractions."""
    row_map = Design.of(schema).row_map
    X, y = schema.vectors(nw.from_native(rows, eager_only=True))
    V, w = row_map.integers(X, y)
    fits = [sum((int(v) * t for v, t in zip(row, theta, strict=True)), Fraction(0)) for row in V]
    return [abs(int(b) - fit) for b, fit in zip(w, fits, strict=True)]


THETA = (Fraction(3, 8), Fraction(-5, 4), Fraction(1, 1024))


def counted(work: Any, rows: pd.DataFrame) -> list[int]:
    state: Sums = work.fold(work.empty(), nw.from_native(rows, eager_only=True))
    return state.values()


@sampled(2)
@pytest.mark.parametrize("theta", [None, THETA], ids=["targets", "residuals"])
def test_scales_are_whole_numbers_with_the_sensitivity_that_is_claimed(theta: tuple[Fraction, ...] | None) -> None:
    rows = frame(200, seed=4)
    rows.loc[::7, "y"] *= 30
    rows.loc[::11, "a"] = math.nan
    work, bins = ScalePass(SCHEMA, theta), ResidualHistogramPass(SCHEMA, theta, count=12)
    limit = DESIGN.row_map.target_limit
    sizes = by_hand(SCHEMA, rows, theta or (Fraction(0),) * 3)
    whole = [min(math.floor(size), limit) for size in sizes]
    assert counted(work, rows) == [sum(whole), limit * len(rows) - sum(whole)]
    total, everybody = counted(bins, rows), counted(work, rows)
    assert sum(total) == len(rows)
    for i in range(0, 200, 5):
        fewer = rows.drop(index=i)
        moved = [a - b for a, b in zip(everybody, counted(work, fewer), strict=True)]
        assert moved == [whole[i], limit - whole[i]]
        assert sum(n * n for n in moved) <= limit**2
        place = [a - b for a, b in zip(total, counted(bins, fewer), strict=True)]
        assert sorted(place) == [0] * 11 + [1]
        k = place.index(1)
        assert k == 0 or float(sizes[i]) < limit * 2 ** (-k / 2) * (1 + 1e-12)
        assert k == 11 or float(sizes[i]) >= limit * 2 ** (-(k + 1) / 2) * (1 - 1e-12)


def test_scale_passes_merge_in_any_order() -> None:
    rows = frame(301, seed=6)
    for work in (ScalePass(SCHEMA, THETA), ResidualHistogramPass(SCHEMA, THETA)):
        parts = [work.fold(work.empty(), nw.from_native(rows.iloc[i::3], eager_only=True)) for i in (2, 0, 1)]
        merged = work.merge(work.merge(parts[0], work.unpack(work.pack(parts[1]))), parts[2])
        assert pickle.loads(pickle.dumps(work)) == work
        assert merged.values() == counted(work, rows) == counted(work, rows.iloc[::-1])


@pytest.mark.parametrize("theta", [(1e300, 0, 0), (1.0,), (math.nan, 0, 0)])
def test_bad_points_are_refused(theta: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        ScalePass(SCHEMA, theta)
    with pytest.raises(ValueError, match="count"):
        ResidualHistogramPass(SCHEMA, None, count=1)


def test_a_huge_point_is_still_exact() -> None:
    rows, theta = frame(50, seed=8), (Fraction(2) ** 90, Fraction(1, 3), Fraction(0))
    work = ScalePass(SCHEMA, theta)
    limit = DESIGN.row_map.target_limit
    assert sum(counted(work, rows)) == limit * 50


class Recorded(Simulation):
    """Notes what is released, and adds nothing."""

    laws: list[Gaussian]

    def add_integers(self, values: Any, law: Any) -> list[int]:
        self.laws = [*getattr(self, "laws", []), law]
        return list(self.reveal(values))


def test_the_noise_on_scales_is_what_was_paid_for() -> None:
    noise, limit = Recorded(1), DESIGN.row_map.target_limit
    mean, histogram = MeanSize(DESIGN, Fraction(1, 8), Fraction(22, 100)), SizeHistogram(DESIGN, Fraction(1, 8), 10)
    released = mean.draw(private(1000), noise)
    counts = histogram.draw(private(1000), noise, THETA)
    assert [law.sigma for law in noise.laws] == [limit * 8, Fraction(8)]
    assert mean.cost.mu_squared == histogram.cost.mu_squared == Fraction(1, 64)
    true = float(np.abs(frame(1000)["y"]).mean())
    assert float(released) == pytest.approx((1000 * true + 0.22 * 40) / 1040, abs=1e-3)
    assert sum(counts) == 1000
    assert len(counts) == 10


def test_a_scale_of_no_rows_is_the_guess() -> None:
    empty = Secret(Rows(frame(0).astype(float), SCHEMA))
    assert float(MeanSize(DESIGN, Fraction(1, 8), Fraction(1, 4)).draw(empty, Recorded(1))) == 0.25
