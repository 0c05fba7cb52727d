"""A fit on a table where some targets are missing is the fit on the other rows, whoever reads the table."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from snugdp import (
    GLM,
    PCA,
    Category,
    LinearRegression,
    LogisticRegression,
    Number,
    PoissonRegression,
    Schema,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from snugdp.noise import Simulation
from snugdp.tables.losses.losses import Huber
from tests.effort import sampled

ROWS = 600
RNG = np.random.default_rng(8)
X = RNG.uniform(-0.5, 0.5, (ROWS, 3))
GAPS = RNG.random(ROWS) < 0.1
NUMBERS = np.clip(X @ [1.0, -1.0, 0.5] + 3.0, 2.0, 4.0)
LABELS = np.array(["no", "so", "yes"])[np.digitize(X[:, 0], [-0.2, 0.2])]
COUNTS = RNG.poisson(np.exp(X[:, 0] + 1)).astype(float)
NUMBER: dict[str, Any] = {"x_norm": 1, "y_bound": (2, 4)}
NOISE = Simulation(7)

MODELS: dict[str, tuple[Any, Any]] = {
    **{
        method: (LinearRegression(method=method, noise=NOISE, epsilon=4, rows=ROWS, **NUMBER), NUMBERS)
        for method in ("auto", "adassp", "objective", "descent", "sufficient")
    },
    "huber": (GLM(Huber("0.5"), noise=NOISE, **NUMBER), NUMBERS),
    "poisson": (PoissonRegression(x_norm=1, y_max=20, rate_max=20, noise=NOISE), COUNTS),
    "two classes": (LogisticRegression(classes=["no", "yes"], x_norm=1, noise=NOISE), LABELS),
    "one by one": (LogisticRegression(classes=["no", "so", "yes"], x_norm=1, multi_class="ovr", noise=NOISE), LABELS),
    "together": (
        LogisticRegression(classes=["no", "so", "yes"], x_norm=1, multi_class="softmax", noise=NOISE),
        LABELS,
    ),
    "sparse": (SparseLinearRegression(2, y_bound=(2, 4), noise=NOISE), NUMBERS),
    "sparse labels": (SparseLogisticRegression(1, classes=["no", "yes"], noise=NOISE), LABELS),
}


def gappy(y: Any, gap: Any) -> Any:
    cells = y.astype(object)
    cells[GAPS] = gap
    return cells


def known(model: Any, y: Any) -> Any:
    classes = getattr(model, "classes", None)
    return ~GAPS if classes is None else ~GAPS & np.isin(y, classes)


@sampled(12)
@pytest.mark.parametrize("kind", MODELS)
def test_missing_targets_are_as_if_their_rows_were_not_there(kind: str) -> None:
    model, y = MODELS[kind]
    some = known(model, y)
    answer = model.fit(X[some], y[some]).coef_.copy()
    gap = np.nan if y.dtype.kind == "f" else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows, target in (
            (X, gappy(y, gap)),
            (X.tolist(), gappy(y, "?").tolist()),
            (pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(gappy(y, pd.NA))),
            (pl.DataFrame(X, schema=["a", "b", "c"]), pl.Series(gappy(y, None).tolist())),
            (pa.table(dict(zip("abc", X.T, strict=True))), pa.array(gappy(y, None).tolist())),
        ):
            assert np.array_equal(model.fit(rows, target).coef_, answer)
    if kind.startswith("sparse"):
        assert np.array_equal(model.fit(sp.csr_matrix(X), gappy(y, gap)).coef_, answer)


@sampled(2)
@pytest.mark.parametrize("method", ["auto", "adassp"])
def test_tables_that_hold_their_target(method: str, tmp_path: Path) -> None:
    schema = Schema({**{name: Number("-1/2", "1/2") for name in "abc"}, "y": Number(2, 4)}, target="y")
    table = pl.DataFrame({**dict(zip("abc", X.T, strict=True)), "y": gappy(NUMBERS, None).tolist()})
    table.write_parquet(tmp_path / "t.parquet")
    table.write_csv(tmp_path / "t.csv")
    model = LinearRegression(method=method, schema=schema, noise=NOISE)
    answer = model.fit(table.drop_nulls("y")).coef_.copy()
    for data in (table, table.to_pandas(), table.to_arrow(), tmp_path / "t.parquet", tmp_path / "t.csv", table.lazy()):
        assert np.array_equal(model.fit(data).coef_, answer)
    assert np.array_equal(model.fit(table.drop("y"), table["y"]).coef_, answer)


def test_what_the_model_is_worth_is_not_moved_by_gaps() -> None:
    """The middle of far too wide bounds, as a tenth of the targets, would move every prediction."""
    target = 0.2 * X[:, 0] + 1.0
    model = LinearRegression(x_norm=1, y_bound=(0, 1000), method="adassp", noise=Simulation(1), epsilon=100)
    cells = target.copy()
    cells[GAPS] = np.nan
    assert np.abs(model.fit(X, cells).predict(X) - model.fit(X[~GAPS], cells[~GAPS]).predict(X)).max() == 0


@sampled(3)
@pytest.mark.parametrize("kind", MODELS)
def test_a_table_without_any_target_is_a_table_without_rows(kind: str) -> None:
    model, y = MODELS[kind]
    nothing = np.full(ROWS, np.nan) if y.dtype.kind == "f" else np.full(ROWS, None, dtype=object)
    model.fit(X, nothing)
    one = model.coef_.copy()
    assert np.array_equal(model.fit(X[:5], nothing[:5]).coef_, one)


@sampled(3)
@pytest.mark.parametrize("missing", ["drop", "indicator", {"a": "drop", "c": "indicator"}])
@pytest.mark.parametrize("kind", [LinearRegression, SparseLinearRegression])
def test_a_schema_says_what_missing_features_do(missing: Any, kind: Any) -> None:
    columns: dict[str, Any] = {
        **{name: Number("-1/2", "1/2") for name in "ab"},
        "c": Category(["u", "v"]),
        "y": Number(2, 4),
    }
    table = pl.DataFrame(
        {
            "a": [None if row % 9 == 0 else float(value) for row, value in enumerate(X[:, 0])],
            "b": X[:, 1],
            "c": [None if row % 7 == 0 else "uvw"[row % 3] for row in range(ROWS)],
            "y": gappy(NUMBERS, None).tolist(),
        }
    )
    schema = Schema(columns, target="y", missing=missing)
    model = kind(**({"n_features_to_select": 2} if kind is SparseLinearRegression else {}), schema=schema, noise=NOISE)
    answer = model.fit(table).coef_.copy()
    dropped = [name for name in "abc" if schema.missing == "drop" or (schema.missing != "indicator" and name == "a")]
    kept = table.drop_nulls(["y", *dropped])
    assert len(kept) < len(table)
    assert np.array_equal(model.fit(kept).coef_, answer)
    assert len(model.predict(table)) == ROWS  # every row has an answer
    assert np.isfinite(model.predict(table)).all()
    words = str(model.plan_)
    assert "rows without a target" in words
    assert (
        "left out" in words.replace("rows without a target (not a number, or not one of the classes) are left out", "")
    ) == (missing != "indicator")
    assert ("entry of its own" in words) == (missing != "drop")


def test_components_of_rows_that_are_whole() -> None:
    table = pl.DataFrame({"a": [None if row % 5 == 0 else row % 3 / 3 for row in range(300)], "b": [0.5] * 300})
    schema = Schema({"a": Number(0, 1), "b": Number(0, 1)}, missing="drop")
    model = PCA(n_components=1, schema=schema, noise=NOISE)
    answer = model.fit(table).components_.copy()
    assert np.array_equal(model.fit(table.drop_nulls()).components_, answer)
    assert model.transform(table).shape == (300, 1)


def test_public_rows_without_a_target_are_not_validated_on() -> None:
    given: dict[str, Any] = {"method": "adassp", "proposals": {"ridge": [0.1, 10.0]}, "noise": NOISE, **NUMBER}
    cells = NUMBERS.copy()
    cells[GAPS] = np.nan
    gaps = LinearRegression(validation=(X, cells), **given).fit(X, NUMBERS)
    whole = LinearRegression(validation=(X[~GAPS], NUMBERS[~GAPS]), **given).fit(X, NUMBERS)
    assert np.array_equal(gaps.coef_, whole.coef_)
    with pytest.raises(ValueError, match="at least one public row"):
        LinearRegression(validation=(X, np.full(ROWS, np.nan)), **given).fit(X, NUMBERS)
