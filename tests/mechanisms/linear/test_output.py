"""Output perturbation: the exact law of the whole output against the claimed budget, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from snugdp import Budget, MemoryLedger, Simulation
from snugdp.ledger.errors import BudgetExceededError
from snugdp.mechanisms.linear.base import Design, Method
from snugdp.mechanisms.linear.output import OutputPerturbation
from snugdp.mechanisms.linear.ridge_test import RidgeCertificate
from snugdp.release.context import ReleaseContext
from snugdp.secrecy.secret import Secret
from snugdp.tables.rows import Rows
from snugdp.tables.schema.kinds import Number
from snugdp.tables.schema.schema import Schema
from tests.mechanisms.linear.ridge_audit import DESIGN, audit, moments

ONES = (1.0, 1.0)
ODD = (1.0, -1.0)


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
def test_the_whole_output_is_as_private_as_claimed(
    *, epsilon: float, delta: float, ridge: float, shares: Any, rows: int
) -> None:
    method = OutputPerturbation(DESIGN, Budget(epsilon, delta), ridge=ridge, test_shares=shares)
    held, more = moments([ONES] * rows), moments([ONES] * rows + [ODD])
    for one, other in ((held, more), (more, held)):
        assert audit(method, one, other, epsilon, points=97) <= delta


def test_less_noise_is_found_out() -> None:
    method = OutputPerturbation(DESIGN, Budget(4, 1e-6), ridge=1000, test_shares=(0, 0.5))
    held, more = moments([]), moments([ODD])
    assert audit(method, held, more, 4.0) > 0.5e-6
    assert audit(method, held, more, 4.0, shrink=0.9) > 1e-6


SCHEMA = Schema({"x": Number(-1, 1), "y": Number(-1, 1)}, target="y")


def table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, n)
    return pd.DataFrame({"x": x, "y": np.clip(0.5 * x + 0.1 * rng.normal(size=n), -1, 1)})


@pytest.mark.parametrize("ridge", [None, 20])
def test_it_fits(ridge: float | None) -> None:
    method = OutputPerturbation(Design.of(SCHEMA), Budget(2, 1e-6), ridge=ridge)
    outcome = method.fit(Secret(Rows(table(30_000), SCHEMA)), ReleaseContext(budget=method.budget))
    assert outcome.value is not None
    assert isinstance(outcome.certificate, RidgeCertificate)
    assert outcome.value.noise is not None
    assert np.abs(outcome.value.theta - [0.5, 0.0]).max() < 6 * outcome.value.noise + 0.05
    assert outcome.cost.fits(method.budget)
    assert 0 < method.forecast(30_000).noise < 0.1
    assert "release" in str(method.plan())


def test_empty_tables_are_answered() -> None:
    method: Method = OutputPerturbation(Design.of(SCHEMA), Budget(2, 1e-6))
    assert method.fit(Secret(Rows(table(0), SCHEMA)), ReleaseContext(Simulation(1))).value is not None


def test_a_bound_beyond_all_reason_is_a_refusal() -> None:
    method = OutputPerturbation(Design.of(SCHEMA), Budget("0.1", 1e-9), ridge="1e-3", test_shares=(0, "0.01"))
    outcome = method.fit(Secret(Rows(table(10), SCHEMA)), ReleaseContext(Simulation(1)))
    assert outcome.refused


@pytest.mark.parametrize(
    ("budget", "given", "message"),
    [
        (Budget(1, 1e-6, "replace"), {}, "add_remove"),
        (Budget(1), {}, "delta > 0"),
        (Budget(1, 1e-6), {"ridge": 0}, "ridge must be above 0"),
        (Budget(1, 1e-6), {"ridge": "adaptive"}, "ridge must be a number"),
        (Budget(1, 1e-6), {"test_shares": (0.9, 0.2)}, "test_shares"),
    ],
)
def test_bad_input_is_refused_when_the_method_is_made(budget: Budget, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OutputPerturbation(DESIGN, budget, **given)


def test_a_short_ledger_stops_everything() -> None:
    method = OutputPerturbation(Design.of(SCHEMA), Budget(2, 1e-6))
    with pytest.raises(BudgetExceededError):
        method.fit(Secret(Rows(table(10), SCHEMA)), ReleaseContext(ledger=MemoryLedger(1, 1e-6)))
