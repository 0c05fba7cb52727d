"""The ridge methods: the exact law of the whole output against the claimed budget, the rules, and what is refused."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from snugdp import Budget, MemoryLedger, Simulation
from snugdp.accounting.output.posterior import log_lipschitz_sensitivity, rho_guess
from snugdp.ledger.errors import BudgetExceededError
from snugdp.mechanisms.linear import ridge_test
from snugdp.mechanisms.linear.base import Design, Method
from snugdp.mechanisms.linear.ridge import OutputPerturbation, PosteriorSampling
from snugdp.mechanisms.linear.ridge_test import RidgeCertificate
from snugdp.numerics.ridge import smallest_eigenvalue
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import PrivateComputationError, Secret
from snugdp.tables.passes.vectors.moments import Moments
from snugdp.tables.rowmap import RowMap
from snugdp.tables.rows import Rows
from snugdp.tables.schema.kinds import Number
from snugdp.tables.schema.schema import Schema
from tests.effort import often, repeated, sampled
from tests.mechanisms.linear.ridge_audit import DESIGN, Quantiles, audit, moments
from tests.vectors.adapters import LINEAR

ONES = (1.0, 1.0)
ODD = (1.0, -1.0)


def both(n: int, odd: tuple[float, float] = ODD) -> tuple[Moments, Moments]:
    """A table of n equal rows, and the same with an odd one."""
    return moments([ONES] * n), moments([ONES] * n + [odd])


TIGHT = [
    # epsilon, delta, ridge, shares, rows, the odd row is removed: without a test of the curvature
    (4.0, 1e-6, 1000.0, (0, 0.5), 0, False),
    (4.0, 1e-6, 3000.0, (0, 0.1), 20, True),
    (0.1, 1e-9, 20000.0, (0, 0.5), 0, False),
    (8.0, 1e-2, 100.0, (0, 0.3), 0, False),
    (1.0, 1e-5, 2000.0, (0, 0.3), 0, True),
]


@sampled(3)
@pytest.mark.parametrize("case", TIGHT, ids=str)
def test_the_whole_output_is_as_private_as_claimed_and_less_noise_is_not(case: Any) -> None:
    epsilon, delta, ridge, shares, n, removed = case
    method = PosteriorSampling(DESIGN, Budget(epsilon, delta), ridge=ridge, test_shares=shares)
    held, odd = both(n)
    one, other = (odd, held) if removed else (held, odd)
    used = audit(method, one, other, epsilon) / delta
    assert used <= 1
    assert audit(method, other, one, epsilon) <= delta
    if used > 0.5:
        assert audit(method, one, other, epsilon, shrink=0.9) > delta


def test_some_of_these_are_tight() -> None:
    method = PosteriorSampling(DESIGN, Budget(4, 1e-6), ridge=1000, test_shares=(0, 0.5))
    assert audit(method, *both(0), 4.0) > 0.75e-6


@pytest.mark.slow
@repeated
def test_random_tables_and_budgets() -> None:
    rng = np.random.default_rng(11)
    for _ in range(often(6, 20, 40)):
        epsilon, delta = float(10 ** rng.uniform(-1, 0.9)), float(10 ** rng.uniform(-9, -2))
        ridge, share = float(10 ** rng.uniform(0, 4)), float(rng.uniform(0.05, 0.7))
        method = PosteriorSampling(DESIGN, Budget(epsilon, delta), ridge=ridge, test_shares=(0, share))
        odd = (float(rng.choice([1.0, -1.0, 0.5])), float(rng.choice([-1.0, 1.0])))
        held, more = both(int(10 ** rng.uniform(0, 3.5)) - 1, odd)
        for one, other in ((held, more), (more, held)):
            assert audit(method, one, other, epsilon) <= delta


@pytest.mark.slow
@repeated
def test_with_a_test_of_the_curvature(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strength from floats, which is larger than the certified one by a millionth or less, or by a part in 500."""

    @lru_cache
    def quick(added: Fraction, removed: Fraction, mu_squared: Fraction, slack: Fraction, digits: int) -> Fraction:
        return Fraction(rho_guess(float(added), float(removed), math.sqrt(mu_squared), float(slack)))

    monkeypatch.setattr("snugdp.mechanisms.linear.ridge.rho_max", quick)
    for epsilon, n, ridge in ((4.0, 3000, 50.0), (4.0, 60, 5.0), (1.0, 400, 30.0))[: often(1, 3)]:
        method = PosteriorSampling(DESIGN, Budget(epsilon, 1e-6), ridge=ridge)
        held, odd = both(n)
        for one, other in ((held, odd), (odd, held)):
            assert audit(method, one, other, epsilon, points=97) <= 1e-6


@sampled(8)
@pytest.mark.parametrize(
    ("epsilon", "delta", "ridge", "shares", "rows"),
    [
        (4.0, 1e-6, 1000.0, (0, 0.5), 0),
        (1.0, 1e-5, 3000.0, (0, 0.3), 20),
        (0.1, 1e-9, 30000.0, (0, 0.5), 0),
        (8.0, 1e-2, 200.0, (0, 0.3), 5),
        (4.0, 1e-6, 50.0, (0.05, 0.1), 3000),
        (4.0, 1e-6, 5.0, (0.05, 0.1), 60),
    ],
)
def test_a_noisy_solution_is_as_private_as_claimed(
    *, epsilon: float, delta: float, ridge: float, shares: Any, rows: int
) -> None:
    method = OutputPerturbation(DESIGN, Budget(epsilon, delta), ridge=ridge, test_shares=shares)
    held, more = both(rows)
    for one, other in ((held, more), (more, held)):
        assert audit(method, one, other, epsilon, points=97) <= delta


def test_less_noise_on_a_solution_is_found_out() -> None:
    method = OutputPerturbation(DESIGN, Budget(4, 1e-6), ridge=1000, test_shares=(0, 0.5))
    held, more = both(0)
    assert audit(method, held, more, 4.0) > 0.5e-6
    assert audit(method, held, more, 4.0, shrink=0.9) > 1e-6


def test_the_paper_s_sensitivity_does_not_cover_a_removed_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows (1,1), (1,1), (1,-1), ridge 1: the second release, where the first one said the truth."""

    def size() -> float:
        method = PosteriorSampling(DESIGN, Budget(1, 1e-6), ridge=1)
        noise: Any = Quantiles([0.0])
        method._test._residual(Secret(moments([ONES, ONES, ODD])), Fraction(3), Fraction(1), noise)
        method._test._residual(Secret(moments([ONES, ONES])), Fraction(3), Fraction(1), (again := Quantiles([0.0])))  # type: ignore[arg-type]
        moved = abs(noise.values[0] - again.values[0])
        return float(moved / noise.sigmas[0]) / float(method._test.split.mu_residual)

    assert size() <= 1
    monkeypatch.setattr(
        ridge_test, "log_lipschitz_sensitivity", lambda *given: log_lipschitz_sensitivity(*given, removal=False)
    )
    assert size() > 1.2


def test_the_code_takes_these_steps() -> None:
    """One column of 300 rows, quantiles by hand: the certificate and gamma that the formulas of the vectors give."""
    method = PosteriorSampling(DESIGN, Budget(4, 1e-6), ridge=50, test_shares=(0.1, 0.2))
    noise: Any = Quantiles([0.2, -0.5])
    found = method._test.certify(Secret(moments([ONES] * 300)), noise)
    by_hand = LINEAR["ops_ptr_release"](
        eps=4.0, delta=1e-6, lam=50.0, lambda_min=300.0, theta_norm=300 / 350, B=1.0, By=1.0,
        share1=0.1, share2=0.2, f0=0.1, f1=0.05, f2=0.05, Z1=0.2, Z2=-0.5,
    )  # fmt: skip
    assert found.curvature == pytest.approx(by_hand["lambda_tilde"], rel=1e-5)
    assert found.residual == pytest.approx(by_hand["rbar"], rel=1e-5)
    assert float(method._mechanism.allowed(found) or 0) == pytest.approx(by_hand["gamma"], rel=6e-4)


COLUMNS = 3
SCHEMA = Schema({**{f"x{i}": Number(-1, 1) for i in range(COLUMNS)}, "y": Number(-1, 1)}, target="y")


def table(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, COLUMNS))
    y = np.clip(X @ [0.4, -0.3, 0.2] + 0.05 * rng.normal(size=n), -1, 1)
    return pd.DataFrame({**{f"x{i}": X[:, i] for i in range(COLUMNS)}, "y": y})


TRUTH = [0.4 * 3**0.5, -0.3 * 3**0.5, 0.2 * 3**0.5, 0]


def made(**given: Any) -> PosteriorSampling:
    return PosteriorSampling(Design.of(SCHEMA), Budget(2, 1e-6), **given)


RIDGES: list[dict[str, Any]] = [
    {},
    {"ridge": 100},
    {"ridge": "adaptive"},
    {"ridge": "balanced", "rows": 20_000},
    {"ridge": list(np.geomspace(1, 1e4, 30))},
    {"gamma": "0.01"},
]


@sampled(4)
@pytest.mark.parametrize("given", RIDGES, ids=lambda given: ",".join(given) + str(given.get("ridge"))[:9])
def test_every_form_of_a_proposal_fits(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(gram: list[list[int]], unit: Fraction, accuracy: Fraction) -> Fraction:
        calls.append(1)
        return smallest_eigenvalue(gram, unit, accuracy)

    monkeypatch.setattr(ridge_test, "smallest_eigenvalue", counted)
    method = made(**given)
    outcome = method.fit(Secret(Rows(table(20_000), SCHEMA)), ReleaseContext(Simulation(5)))
    assert len(calls) == (0 if given.get("ridge") == "balanced" else 1)
    assert outcome.value is not None
    fit, certificate = outcome.value, outcome.certificate
    assert isinstance(certificate, RidgeCertificate)
    assert fit.theta.shape == (COLUMNS + 1,)
    assert fit.noise is not None
    assert np.abs(fit.theta - TRUTH).max() < 6 * fit.noise + 0.2
    assert set(fit.released) == {"ridge", "gamma", "curvature", "residual"}
    assert outcome.cost.fits(method.budget)
    assert method.forecast(20_000).noise < 1.0
    assert method.plan().theorem.id == "linear-posterior/1"
    if isinstance(given.get("ridge"), list):
        assert certificate.ridge in [float(value) for value in given["ridge"]]


@pytest.mark.parametrize("ridge", [None, 20])
def test_a_noisy_solution_fits(ridge: float | None) -> None:
    method = OutputPerturbation(Design.of(SCHEMA), Budget(2, 1e-6), ridge=ridge)
    outcome = method.fit(Secret(Rows(table(30_000), SCHEMA)), ReleaseContext(budget=method.budget))
    assert outcome.value is not None
    assert isinstance(outcome.certificate, RidgeCertificate)
    assert outcome.value.noise is not None
    assert np.abs(outcome.value.theta - TRUTH).max() < 6 * outcome.value.noise + 0.05
    assert outcome.cost.fits(method.budget)
    assert 0 < method.forecast(30_000).noise < 0.1
    assert "release" in str(method.plan())
    with pytest.raises(BudgetExceededError):
        method.fit(Secret(Rows(table(10), SCHEMA)), ReleaseContext(ledger=MemoryLedger(1, 1e-6)))


def test_an_exact_release_and_its_receipt() -> None:
    method: Method = made(ridge=200)
    ledger = MemoryLedger(2, 1e-6)
    outcome = method.fit(Secret(Rows(table(3000), SCHEMA)), ReleaseContext(ledger=ledger))
    assert outcome.value is not None
    assert outcome.value.noise == pytest.approx(
        1 / math.sqrt(outcome.value.released["gamma"] * (200 + outcome.value.released["curvature"]))
    )


def test_empty_and_strange_tables_are_answered() -> None:
    rows = {f"x{i}": [float("nan"), float("inf"), 1e308] for i in range(COLUMNS)}
    for data in (table(0), table(1), pd.DataFrame({**rows, "y": [float("nan"), -1e300, 0.0]})):
        for method in (made(ridge=500), OutputPerturbation(Design.of(SCHEMA), Budget(2, 1e-6))):
            assert method.fit(Secret(Rows(data, SCHEMA)), ReleaseContext(Simulation(1))).value is not None


def test_too_large_a_gamma_is_refused_and_paid() -> None:
    method = made(gamma=1e6)
    outcome = method.fit(Secret(Rows(table(500), SCHEMA)), ReleaseContext(budget=method.budget))
    assert outcome.refused
    assert outcome.certificate is None
    assert outcome.cost == method.plan().cost
    assert method.forecast(500).noise == math.inf
    assert [note.code for note in made(gamma=1e6, rows=500).plan().forecast.notes] == ["refusal-expected"]


def test_a_ridge_without_any_strength_is_refused() -> None:
    method = made(ridge="1e-6", test_shares=(0, 0.1))
    assert method.fit(Secret(Rows(table(500), SCHEMA)), ReleaseContext(Simulation(2))).refused
    output = OutputPerturbation(Design.of(SCHEMA), Budget("0.1", 1e-9), ridge="1e-3", test_shares=(0, "0.01"))
    assert output.fit(Secret(Rows(table(10), SCHEMA)), ReleaseContext(Simulation(1))).refused


BAD: list[tuple[dict[str, Any], str]] = [
    ({"ridge": 0}, "ridge must be above 0"),
    ({"ridge": -1}, "ridge must be above 0"),
    ({"ridge": []}, "no numbers"),
    ({"ridge": [1, 0]}, "ridge must be above 0"),
    ({"ridge": "best"}, "balanced"),
    ({"ridge": "balanced"}, "rows"),
    ({"rows": 0}, "whole number above 0"),
    ({"rows": 1.5}, "whole number above 0"),
    ({"gamma": 0}, "gamma must be above 0"),
    ({"gamma": float("nan")}, "gamma must be a finite number"),
    ({"test_shares": (0.5, 0.5)}, "test_shares"),
    ({"test_shares": (0.5, 0)}, "test_shares"),
    ({"test_shares": (-0.1, 0.5)}, "test_shares"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=str)
def test_bad_proposals_are_refused_when_the_method_is_made(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**given)


@pytest.mark.parametrize("make", [PosteriorSampling, OutputPerturbation])
def test_what_no_theorem_covers_is_refused(make: Any) -> None:
    for design, budget, given, message in (
        (DESIGN, Budget(1, 1e-6, "replace"), {}, "add_remove"),
        (DESIGN, Budget(1), {}, "delta > 0"),
        (Design(RowMap(1, 1e-40, 1e-40)), Budget(1, 1e-6), {}, "1e-30"),
        (DESIGN, Budget(1, 1e-6), {"ridge": 0}, "ridge must be above 0"),
        (DESIGN, Budget(1, 1e-6), {"ridge": "best"}, "ridge must be a number"),
        (DESIGN, Budget(1, 1e-6), {"test_shares": (0.9, 0.2)}, "test_shares"),
    ):
        with pytest.raises(ValueError, match=message):
            make(design, budget, **given)
    with pytest.raises(ValueError, match="ridge must be a number"):
        OutputPerturbation(DESIGN, Budget(1, 1e-6), ridge="adaptive")


def test_a_table_of_another_schema_is_not_charged() -> None:
    ledger = MemoryLedger(2, 1e-6, composition="tight")
    wide = Schema({**{f"x{i}": Number(-9, 9) for i in range(COLUMNS)}, "y": Number(-1, 1)}, target="y", norm=0.5)
    with pytest.raises(PrivateComputationError):
        made().fit(Secret(Rows(table(10), wide)), ReleaseContext(ledger=ledger))
    assert ledger.charge(made().plan().cost, "all of it is left")
