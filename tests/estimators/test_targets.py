"""Targets of which nothing is given: classes, largest counts and bounds are found privately, cell by cell."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import snugdp
from snugdp import (
    GLM,
    Boolean,
    Budget,
    Category,
    LogisticRegression,
    MemoryLedger,
    NotReleased,
    Number,
    PATEClassifier,
    PoissonRegression,
    Schema,
    Simulation,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from snugdp.estimators.open.fit import OpenFit
from snugdp.estimators.persons import PersonRows
from snugdp.tables.cells import cell as one
from snugdp.tables.found import Flag
from snugdp.tables.losses.losses import SoftHinge
from snugdp.tables.schema.schema import Layout
from tests.effort import often, sampled

ROWS = 3000


def made(rows: int = ROWS) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, 2)) * [1, 50] + [0, 1000]
    return X, X[:, 0] + (X[:, 1] - 1000) / 50 + rng.logistic(size=rows) / 2


def labels(rows: int = ROWS) -> tuple[Any, Any]:
    X, score = made(rows)
    return X, np.where(score > 0, "yes", "no")


def rehearsed(estimator: Any = LogisticRegression, **options: Any) -> Any:
    return estimator(epsilon=1, delta=1e-6, noise=Simulation(1), **options)


def table(y: Any) -> pd.DataFrame:
    X, _ = made(len(y))
    return pd.DataFrame({"age": X[:, 0], "income": X[:, 1], "bought": pd.Series(list(y), dtype=object)})


@pytest.mark.slow
def test_classes_are_found_released_and_kept(tmp_path: Path) -> None:
    X, y = labels()
    ledger = MemoryLedger(1, 1e-6)
    model = LogisticRegression(epsilon=1, delta=1e-6, ledger=ledger).fit(X, y)
    assert model.released_
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.cost_.fits(Budget(1, 1e-6))
    assert model.bounds_["y"].flag is Flag.FOUND
    found: Any = model.bounds_["y"]
    assert found.values == ("no", "yes")
    snugdp.save(model, tmp_path / "model.json")
    loaded = snugdp.load(tmp_path / "model.json")
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    reused = rehearsed(bounds=model.bounds_).fit(X, y)
    assert rehearsed().fit(X, y).score(X, y) > 0.8
    assert reused.classes_.tolist() == ["no", "yes"]
    assert not reused.cost_.delta  # nothing is looked for again


def test_the_plan_says_what_is_found_and_shown() -> None:
    text = str(rehearsed().plan(2))
    assert "labels that are found privately, and shown" in text
    assert "must not be names, identifiers or free text of persons" in text
    assert "largest count is found privately" in str(rehearsed(PoissonRegression).plan(2))


NUMERIC: dict[str, Any] = {
    "integers": lambda y: y.astype(int),
    "floats": lambda y: y.astype(float),
    "single": lambda y: y.astype(np.float32),
    "booleans": lambda y: y,
    "text": lambda y: y.astype(int).astype(str).tolist(),
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "pandas": lambda y: pd.Series(y, index=range(7, 7 + len(y))),
    "category": lambda y: pd.Series(y.astype(int), dtype="category"),
    "polars": lambda y: pl.Series(y),
    "arrow": lambda y: pa.array(y.tolist()),
    "frame": lambda y: pd.DataFrame({"y": y}),
}


@pytest.mark.slow
def test_one_label_has_one_image_in_every_container(tmp_path: Path) -> None:
    X, y = labels()
    truth = y == "yes"
    first = rehearsed().fit(X, truth.astype(int))
    assert first.classes_.tolist() == [0, 1]
    for name, form in list(NUMERIC.items())[:: often(4, 1)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a frame is no vector
            again = rehearsed().fit(X, form(truth))
        assert again.classes_.tolist() == [0, 1], name
        assert np.array_equal(again.coef_, first.coef_), name
    again = rehearsed().fit(sparse.csr_matrix(X), truth)
    assert np.array_equal(again.coef_, first.coef_)
    frame = table(truth.astype(int))
    frame.to_csv(tmp_path / "t.csv", index=False)
    tables = (frame, pl.from_pandas(frame.astype({"bought": int})), tmp_path / "t.csv", frame.drop(columns="bought"))
    models = [rehearsed().fit(given, "bought") for given in tables[:3]] + [rehearsed().fit(tables[3], truth)]
    assert all(np.array_equal(model.coef_, models[0].coef_) for model in models[:3])
    assert [model.classes_.tolist() for model in models] == [[0, 1]] * 4


def test_a_declared_boolean_needs_no_search(tmp_path: Path) -> None:
    _, y = labels()
    frame = table(y == "yes").astype({"bought": bool})
    frame.to_parquet(tmp_path / "t.parquet")
    model = rehearsed().fit(tmp_path / "t.parquet", "bought")
    assert model.classes_.tolist() == [False, True]


ODD = (None, "", "maybe", 7, 0.5, float("nan"), [1, 2], b"yes", "yes ", True, object(), 2**70, "\ud800")


def images(frame: Any, layout: Layout) -> list[Any]:
    """The rows of a table, with their targets, as a fit reads them."""
    source: Any = OpenFit.of(rehearsed(), PersonRows(frame), "bought").table.source
    parts = [layout.blocks(batch.frame) for batch in source.batches(list(layout.columns))]
    return [np.column_stack([X.copy(), y.copy()]) for blocks in parts for X, y in blocks if y is not None]


@sampled(2)
@pytest.mark.parametrize("place", [0, 5])
def test_an_odd_label_changes_no_other_row(place: int) -> None:
    _, y = labels(1200)
    model = snugdp.LogisticRegression(epsilon=4, delta=1e-6, noise=Simulation(1)).fit(table(y), "bought")
    layout = model._layout
    whole = np.concatenate(images(table(y), layout))
    assert len(whole) == 1200
    others = np.delete(whole, place, axis=0)
    for odd in ODD:
        cells = y.astype(object).copy()
        cells[place] = odd
        found = np.concatenate(images(table(cells), layout))
        assert len(found) == (1200 if one.label(odd) in ("yes", "no") else 1199)  # other labels are dropped
        kept = np.delete(found, place, axis=0) if len(found) == 1200 else found
        assert np.array_equal(kept, others)


@pytest.mark.parametrize(
    "y",
    [
        ["yes"] * 600,
        ["yes", "no"],
        [None] * 600,
        [f"person {row}" for row in range(5000)],
        list(range(5000)),
        [0.5 + row for row in range(600)],
        ["yes"] * 590 + ["no"] * 10,
    ],
    ids=["one", "two rows", "missing", "names", "numbers", "fractions", "rare"],
)
def test_fewer_than_two_classes_are_a_refusal(y: list[Any]) -> None:
    X, _ = made(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rehearsed().fit(X, y)
    assert not model.released_
    assert not hasattr(model, "classes_")
    with pytest.raises(NotReleased, match="two classes"):
        model.predict(X)


@pytest.mark.slow
def test_rare_labels_are_dropped_and_classes_are_what_is_left() -> None:
    X, score = made()
    y = np.where(score > 1, "high", np.where(score < -1, "low", "middle")).astype(object)
    y[:5] = [f"person {row}" for row in range(5)]
    model = rehearsed().fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert model.coef_.shape == (3, 2)
    assert model.score(X, y) > 0.6
    each = rehearsed(multi_class="ovr").fit(X, y)
    assert each.classes_.tolist() == ["high", "low", "middle"]
    assert each.cost_.atoms == ()


def test_other_losses_of_labels() -> None:
    X, y = labels()
    model = rehearsed(GLM, loss=SoftHinge(0.5)).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, y) > 0.75


def test_a_schema_may_leave_its_target_open() -> None:
    _, y = labels()
    schema = Schema({"age": Number(-4, 4), "income": Number(800, 1200), "bought": Category()}, target="bought")
    model = rehearsed(schema=schema).fit(table(y))
    assert model.classes_.tolist() == ["no", "yes"]
    age = model.bounds_["age"]
    assert -4 <= age.lower < age.centre < age.upper <= 4, "centre and scale are found, between public bounds"
    truth = Schema({"age": Number(), "income": Number(), "bought": Boolean()}, target="bought")
    assert rehearsed(schema=truth).fit(table(y)).classes_.tolist() == [False, True]


def test_counts_find_their_largest(tmp_path: Path) -> None:
    X, _ = made()
    y = np.random.default_rng(4).poisson(np.exp(0.5 + 0.5 * X[:, 0]))
    model = rehearsed(PoissonRegression).fit(X, y)
    assert model.released_
    assert model.bounds_["y"].flag is Flag.FOUND
    most = model.bounds_.declared.columns["y"].upper
    assert 5 <= most <= 30
    assert model.predict(X).max() <= most / 2
    assert model.score(X, y) > 0.15
    snugdp.save(model, tmp_path / "model.json")
    assert np.array_equal(snugdp.load(tmp_path / "model.json").predict(X), model.predict(X))
    assert rehearsed(PoissonRegression, bounds=model.bounds_).fit(X, y).score(X, y) > 0.15
    assert not rehearsed(PoissonRegression).fit(X[:20], y[:20]).released_


def test_sparse_lines_find_their_bounds() -> None:
    X, score = made(2000)
    rows = sparse.csr_matrix(X)
    model = rehearsed(SparseLinearRegression, n_features_to_select=1, method="adassp").fit(rows, 100 * score + 5)
    assert model.score(rows, 100 * score + 5) == model.score(X, 100 * score + 5) > 0.3


@pytest.mark.slow
def test_sparse_models_of_named_columns_and_of_labels(tmp_path: Path) -> None:
    X, score = made()
    named = pd.DataFrame(X, columns=["age", "income"]).assign(spent=score)
    assert rehearsed(SparseLinearRegression, n_features_to_select=1).fit(named, "spent").released_
    labelled = SparseLogisticRegression
    model = rehearsed(labelled, n_features_to_select=1).fit(X, score > 0)
    snugdp.save(model, tmp_path / "model.json")
    loaded = snugdp.load(tmp_path / "model.json")
    assert loaded.classes_.tolist() == [0, 1]
    assert np.array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(NotReleased, match="two classes"):
        rehearsed(labelled, n_features_to_select=1).fit(X[:600], [1] * 600).predict(X)
    three = np.where(score > 1, "high", np.where(score < -1, "low", "middle"))
    assert len(rehearsed(labelled, n_features_to_select=1).fit(X, three).classes_) == 2  # the most frequent
    _, y = labels()
    schema = Schema({"age": Number(-4, 4), "income": Number(800, 1200), "bought": Category()}, target="bought")
    chosen = rehearsed(labelled, schema=schema, n_features_to_select=1).fit(table(y))
    assert chosen.classes_.tolist() == ["no", "yes"]
    assert chosen.score(table(y), y) > 0.6


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (LogisticRegression, {"x_norm": 2}, "classes is needed.*leave out x_norm as well"),
        (LogisticRegression, {"method": "objective"}, 'only method="auto"'),
        (PoissonRegression, {"x_norm": 2}, "y_max is needed.*leave out x_norm as well"),
        (PoissonRegression, {"method": "objective"}, 'only method="auto"'),
        (SparseLinearRegression, {"x_bound": 2}, "y_bound is needed.*leave out x_bound as well"),
        (SparseLogisticRegression, {"x_bound": 2}, "classes is needed.*leave out x_bound as well"),
    ],
)
def test_half_of_what_is_public_is_not_enough(estimator: Any, options: dict[str, Any], message: str) -> None:
    X, y = made(20)
    ledger = MemoryLedger(1, 1e-6)
    with pytest.raises(ValueError, match=message):
        estimator(epsilon=1, delta=1e-6, ledger=ledger, **options).fit(X, y > 0)
    assert ledger.remaining.epsilon == 1


def test_teachers_need_public_classes() -> None:
    with pytest.raises(ValueError, match="not found privately"):
        PATEClassifier(epsilon=1, delta=1e-6).fit([[0.0]] * 4, [0, 1] * 2)
