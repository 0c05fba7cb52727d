"""scikit-learn's battery, and that nothing private shows in what a fitted transformer says and keeps."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from snugdp import MemoryLedger, OneHotEncoder, Prepare, Simulation, StandardScaler
from tests.effort import sampled
from tests.estimators import checks
from tests.estimators.checks import ROWS
from tests.estimators.test_check_estimator import failures

SPARSE = dict.fromkeys(  # it asks every class of that name for a parameter of its own
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"), "scikit-learn sets with_mean by the class name"
)
TRANSFORMERS: list[Any] = [Prepare, StandardScaler, OneHotEncoder]


@pytest.mark.slow
@sampled(8, 1)
@pytest.mark.parametrize("noise", [None, Simulation(0)])
@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_all_of_scikit_learns_checks_pass(kind: Any, noise: Any) -> None:
    expected = SPARSE if kind is StandardScaler else {}
    assert failures(kind(noise=noise), expected) == set(expected)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_the_number_of_rows_does_not_show(kind: Any) -> None:
    def public(n: int) -> list[Any]:
        table = pd.DataFrame({"a": ["1"] * n} if kind is OneHotEncoder else {"a": np.ones(n)})
        seen = []
        for rows in (table, table.to_numpy()):
            model = kind().fit(rows)
            seen.append((sorted(vars(model)), str(model.plan_), model.cost_, model.n_features_in_, model.released_))
        return seen

    checks.assert_number_of_rows_does_not_show(public)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_a_pickle_has_no_ledger_and_a_clone_has(kind: Any) -> None:
    ledger = MemoryLedger(9, 1e-5, composition="tight")
    model = kind(ledger=ledger).fit([[float(i % 2), 1.0] for i in range(1000)])
    again = pickle.loads(pickle.dumps(model))
    assert again.bounds_ == model.bounds_
    assert np.array_equal(again.transform([[1.0, 1.0]]), model.transform([[1.0, 1.0]]))
    with pytest.raises(RuntimeError, match="ledger stayed behind"):
        again.fit([[0.0, 0.0]])
    assert clone(model).ledger is ledger
    assert model.receipt_.cost == model.cost_ == ledger.spent


@pytest.mark.parametrize("kind", [Prepare, StandardScaler])
def test_no_cell_raises_or_warns(kind: Any) -> None:
    rows = np.array([[cell, 1.0] for cell in checks.STRANGE for _ in range(3)], dtype=object)
    with checks.no_warnings():
        model = kind(noise=Simulation(1)).fit(rows)
        assert np.isfinite(model.transform(rows)).all()
    assert len(rows) < ROWS


def test_no_label_raises_or_warns() -> None:
    cells = [[cell] for cell in checks.STRANGE if not isinstance(cell, list)]
    frame = pd.DataFrame({"a": pd.Series([cell for (cell,) in cells], dtype=object)})
    with checks.no_warnings():
        for rows in (cells, frame):
            model = OneHotEncoder(categories=[[checks.SECRET]], noise=Simulation(1)).fit(rows)
            assert model.transform(rows).sum() == 1
