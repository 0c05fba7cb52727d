"""scikit-learn's battery, and that nothing private shows in what a fitted PCA says and keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from snugdp import PCA, Number, Schema, Simulation
from tests.effort import sampled
from tests.estimators import checks
from tests.estimators.checks import CANARY, ROWS
from tests.estimators.test_check_estimator import failures

SCHEMA = Schema({"a": Number(0, 10), "b": Number(0, 10)})


@pytest.mark.slow
@sampled(6)
@pytest.mark.parametrize(
    "options", [{}, {"noise": Simulation(0)}, {"center": "private"}, {"method": "projector"}, {"method": "dual"}]
)
def test_all_of_scikit_learns_checks_pass(options: dict[str, Any]) -> None:
    assert failures(PCA(x_norm=10, **options), {}) == set()


@sampled(20)
@pytest.mark.parametrize("method", ["auto", "projector", "dual", "gauss"])
@pytest.mark.parametrize("kind", ["array", "list", "pandas", "schema"])
def test_nothing_of_the_rows_is_kept(method: str, kind: str) -> None:
    def table() -> tuple[Any, ...]:
        X = np.full((ROWS, 2), CANARY)
        X[::3] = 0.0  # or else the released sum would be close to the number of rows
        return (X,)

    bounds: dict[str, Any] = {"schema": SCHEMA} if kind == "schema" else {"x_norm": 10}
    model = PCA(1, method=method, noise=Simulation(1), rows=5, **bounds)  # seeded: digits of noise are no accident
    checks.assert_nothing_kept(model.fit, table, kind)


def test_no_cell_of_a_wide_or_masked_array_warns() -> None:
    wide = np.full((12, 2), np.longdouble("1e4000"))
    masked = np.ma.MaskedArray(wide, mask=np.eye(12, 2, dtype=bool))
    with checks.no_warnings():
        for rows in (wide, masked):
            model = PCA(2, x_norm=10, noise=Simulation(0)).fit(rows)
            assert np.isfinite(model.transform(rows)).all()
            model.inverse_transform(rows)
        model.inverse_transform([[np.inf, -np.inf], [np.nan, 1e308]])


@sampled(2)
@pytest.mark.parametrize("center", ["bounds", "private"])
@pytest.mark.parametrize("method", ["auto", "projector"])
def test_the_number_of_rows_does_not_show(method: str, center: str) -> None:
    def public(n: int) -> list[Any]:
        X = np.ones((n, 2))
        table = pd.DataFrame(X, columns=["a", "b"])
        seen, norm = [], {"x_norm": 10}
        cases: list[tuple[Any, dict[str, Any]]] = [(X, norm), (table, norm), (table, {"schema": SCHEMA})]
        for rows, bounds in cases:
            model = PCA(1, method=method, center=center, **bounds).fit(rows)
            shown = model.cost_, model.n_features_in_, model.released_, model.components_.shape
            seen.append((sorted(vars(model)), str(model.plan_), *shown))
        return seen

    checks.assert_number_of_rows_does_not_show(public)
