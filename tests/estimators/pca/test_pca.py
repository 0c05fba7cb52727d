"""PCA as scikit-learn knows it: units, centres, tables of all kinds, numbers of components, and the picture."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from time import process_time
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA as PLAIN
from sklearn.pipeline import make_pipeline

from snugdp import (
    PCA,
    Boolean,
    BudgetExceededError,
    Category,
    MemoryLedger,
    NotPrivateWarning,
    NotReleased,
    Number,
    Schema,
    Simulation,
)
from snugdp.estimators.pca.pca import METHODS
from snugdp.secrecy.secret import PrivateComputationError
from snugdp.tables.layouts.points import CentredSchema, MatrixSchema, centred
from snugdp.tables.passes.vectors.distances import RowSumPass
from snugdp.tables.passes.vectors.moments import GramPass
from tests.effort import often, repeated, sampled

RNG = np.random.default_rng(0)
TURN = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
ROWS = RNG.normal(size=(20_000, 6)) * [4, 2, 1, 0.3, 0.3, 0.3] @ TURN.T  # leading directions: the columns of TURN
SCHEMA = Schema(
    {"a": Number(0, 10), "b": Number(-5, 5), "c": Category(["x", "y"]), "d": Boolean(), "t": Number(0, 1)}, target="t"
)


def frame(n: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    a = rng.uniform(0, 10, n)
    return pd.DataFrame(
        {
            "a": a,
            "b": np.clip(a - 5 + rng.normal(0, 0.3, n), -5, 5),
            "c": rng.choice(["x", "y", "z"], n),
            "d": a > 5,
            "t": a / 10,
        }
    )


def fitted(k: Any = 2, X: Any = ROWS, **options: Any) -> PCA:
    given = {"epsilon": 4, "x_norm": 20, "noise": Simulation(3), **options}
    return PCA(k, **given).fit(X)


def alike(one: Any, other: Any) -> float:
    """The smallest cosine between two subspaces, given by orthonormal rows."""
    return float(np.linalg.svd(one @ other.T)[1].min())


@pytest.mark.parametrize("method", METHODS)
def test_components_and_variances_are_those_of_scikit_learn_but_for_noise(method: str) -> None:
    plain = PLAIN(2).fit(ROWS)
    model = fitted(method=method, epsilon=8)
    assert model.components_.shape == (2, 6)
    assert np.allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-9)
    assert alike(model.components_, plain.components_) > 0.999
    assert np.allclose(model.explained_variance_, plain.explained_variance_, rtol=0.1)
    assert np.allclose(model.explained_variance_ratio_, plain.explained_variance_ratio_, atol=0.05)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=0.5)
    assert model.n_samples_ == pytest.approx(20_000, rel=0.02)
    assert model.n_components_ == 2
    assert model.n_features_in_ == 6
    assert (np.abs(model.components_).max(axis=1) == model.components_.max(axis=1)).all()  # signs are fixed


def test_transform_is_the_linear_map_that_scikit_learn_has() -> None:
    model = fitted(3)
    coordinates = model.transform(ROWS[:50])
    assert np.allclose(coordinates, (ROWS[:50] - model.mean_) @ model.components_.T)
    back = model.inverse_transform(coordinates)
    assert np.allclose(back, coordinates @ model.components_ + model.mean_)
    assert np.allclose(model.transform(back), coordinates)
    assert model.transform(ROWS[:0]).shape == (0, 3)
    assert np.allclose(model.transform([[math.nan] * 6]), 0)
    assert np.isfinite(model.transform([[math.inf] * 6])).all()
    assert np.allclose(
        PCA(2, x_norm=20, noise=Simulation(1)).fit_transform(ROWS),
        fitted(2, epsilon=1, noise=Simulation(1)).transform(ROWS),
    )
    with pytest.raises(ValueError, match="6 features"):
        model.transform(ROWS[:, :5])
    with pytest.raises(ValueError, match="3 columns"):
        model.inverse_transform(np.zeros((2, 6)))


def test_centres() -> None:
    away = ROWS / 4 + np.array([3.0, -2, 1, 0, 0, 0])
    middle = fitted(1, away)
    assert (middle.mean_ == 0).all()
    assert alike(middle.components_, np.array([[3.0, -2, 1, 0, 0, 0]]) / math.sqrt(14)) > 0.9  # towards the mean
    for center in ("private", away.mean(axis=0), away.mean(axis=0).tolist()):
        model = fitted(1, away, center=center)
        assert np.allclose(model.mean_, away.mean(axis=0), atol=0.05)
        assert alike(model.components_, TURN[:, :1].T) > 0.99
        assert model.explained_variance_[0] == pytest.approx(1, rel=0.15)
    private = PCA(1, x_norm=20, center="private")
    assert "mean" in str(private.plan(6))
    assert "mean" not in str(PCA(1, x_norm=20, center=[0] * 6).plan(6))
    assert private.plan(6).cost == PCA(1, x_norm=20).plan(6).cost  # out of the same budget
    for bad in ("mean", [0, 0], [math.nan] * 6, ["a"] * 6, None, [1e300] * 6):
        with pytest.raises(ValueError, match="center"):
            fitted(1, center=bad)


def test_numbers_of_components() -> None:
    assert fitted("auto", ROWS * [1, 1, 1, 1, 1, 1]).n_components_ in (1, 2)
    assert fitted(6).n_components_ == 6
    assert fitted(0.5).n_components_ == 1
    assert fitted(0.93).n_components_ == 2
    assert fitted(0.97, method="projector").n_components_ == 3
    assert fitted("auto", method="projector").n_components_ in (1, 2)
    assert np.isclose(fitted(6).explained_variance_ratio_.sum(), 1, atol=0.02)
    for bad in (0, 7, 1.5, -1, True, "many", None, [1], 0.0):
        with pytest.raises(ValueError, match="n_components"):
            fitted(bad)


def test_a_public_number_of_rows_saves_its_share() -> None:
    model = fitted(2, rows=20_000)
    assert model.n_samples_ == 20_000
    assert "number of rows" not in str(model.plan_)
    assert "number of rows" in str(fitted(2).plan_)
    with pytest.raises(ValueError, match="rows must be"):
        fitted(2, rows=0)


def test_a_schema_scales_every_column_to_the_same_units() -> None:
    table = frame()
    model = PCA(2, epsilon=8, schema=SCHEMA, center="private", noise=Simulation(1)).fit(table)
    assert model.components_.shape == (2, 5)
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]  # the target is left out
    assert list(model.get_feature_names_out()) == ["pca0", "pca1"]
    assert model.mean_[:2] == pytest.approx([5, 0], abs=0.3)
    assert model.mean_[2:4] == pytest.approx([1 / 3, 1 / 3], abs=0.1)
    z = np.column_stack([(table.a - 5) / 5, table.b / 5, table.c == "x", table.c == "y", 2.0 * table.d - 1])
    plain = PLAIN(2).fit(z)
    assert alike(model.components_[:1], plain.components_[:1]) > 0.99
    assert model.explained_variance_[0] == pytest.approx(plain.explained_variance_[0], rel=0.15)
    coordinates = model.transform(table)
    centre = (model.mean_ - [5, 0, 0, 0, 0.5]) / [5, 5, 1, 1, 0.5]
    assert np.allclose(coordinates, (z - centre) @ model.components_.T, atol=1e-9)
    assert np.allclose(model.inverse_transform(coordinates)[:, 0], table.a, atol=3)
    with pytest.raises(TypeError, match="table with the columns"):
        model.transform(z)


def same(one: PCA, other: PCA) -> bool:
    return np.array_equal(one.components_, other.components_) and np.array_equal(one.spectrum_, other.spectrum_)


@sampled(3)
@pytest.mark.parametrize("center", ["bounds", "private", [4, 1, 0, 0.5, 0.5]])
def test_tables_of_all_kinds_give_the_same_to_the_last_bit(tmp_path: Path, center: Any) -> None:
    table = pl.from_pandas(frame(500))
    table.write_parquet(tmp_path / "t.parquet")
    table.write_csv(tmp_path / "t.csv")
    first = PCA(2, schema=SCHEMA, center=center, noise=Simulation(5)).fit(table)
    kinds: list[Any] = [
        table.to_pandas(),
        table.to_arrow(),
        table.lazy(),
        tmp_path / "t.parquet",
        str(tmp_path / "t.csv"),
    ]
    for kind in kinds:
        assert same(clone(first).fit(kind), first)
    assert same(clone(first).fit(table.sample(fraction=1, shuffle=True, seed=1)), first)
    with pytest.raises(ValueError, match="no column"):
        PCA(2, schema=SCHEMA).fit(table.drop("b"))
    with pytest.raises(TypeError, match="categories"):
        PCA(2, schema=SCHEMA).fit(table.with_columns(c=[1.0]))


@pytest.mark.parametrize("layout", [centred(SCHEMA, (0.1,) * 6), MatrixSchema(("a", "b"), 3, (0.1, 0.2))])
def test_passes_travel(layout: Any) -> None:
    data = nw.from_native(frame(50)[["a", "b"] if isinstance(layout, MatrixSchema) else list("abcdt")], eager_only=True)
    works: list[Any] = [GramPass(layout), RowSumPass(layout)]
    for work in works:
        sent = pickle.loads(pickle.dumps(work))
        assert sent == work
        state = sent.fold(sent.empty(), data)
        packed = sent.pack(state)
        back = work.unpack(packed)
        assert work.pack(work.merge(work.empty(), back)) == packed
    assert centred(layout, ()) != layout
    assert isinstance(layout, MatrixSchema | CentredSchema)


def test_sums_are_exact_and_rows_within_the_limit() -> None:
    layout = MatrixSchema(("a", "b"), 1)
    work = RowSumPass(layout)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 2))
    X[0], X[1] = np.nan, np.inf
    data = nw.from_native(pd.DataFrame(X, columns=["a", "b"]), eager_only=True)
    *sums, count = work.fold(work.empty(), data).values()
    images, _ = work.row_map.integers(X)
    assert count == 3000
    assert sums == images.sum(axis=0).tolist()
    assert int((images**2).sum(axis=1).max()) <= work.row_map.norm_squared


def test_frames_and_arrays_agree() -> None:
    first = fitted(2)
    for kind in (ROWS.tolist(), pd.DataFrame(ROWS), pl.DataFrame(ROWS), np.asfortranarray(ROWS), ROWS.astype(object)):
        assert same(fitted(2, kind), first)
    named = pd.DataFrame(ROWS, columns=list("uvwxyz"))
    model = fitted(2, named).set_output(transform="pandas")
    out = model.transform(named)
    assert list(out.columns) == ["pca0", "pca1"]
    assert np.allclose(out, first.transform(ROWS))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(named[list("zyxwvu")])
    polar = fitted(2, pl.DataFrame(ROWS))
    with pytest.raises(ValueError, match="feature names"):
        polar.transform(pl.DataFrame(ROWS).select(pl.all().name.suffix("?")))


def test_a_plan_is_free_and_says_what_it_costs() -> None:
    model = PCA(3, epsilon=0.5, delta=1e-7, x_norm=2)
    with pytest.raises(ValueError, match="n_features"):
        model.plan()
    for method in METHODS:
        plan = model.set_params(method=method).plan(10)
        assert plan.cost.delta_at(0.5) <= 1e-7
        assert "epsilon 0.5 at delta 1e-07" in str(plan)
    assert PCA(1, schema=SCHEMA).plan().cost.fits(PCA(1)._budget())
    assert "the components" in str(PCA(2, x_norm=1, focus="components").plan(4))


def test_every_fit_is_charged_to_the_shared_ledger() -> None:
    ledger = MemoryLedger(1, 1e-6, composition="tight")
    model = PCA(2, epsilon=0.5, x_norm=20, ledger=ledger)
    pipe = make_pipeline(model)
    pipe.fit(ROWS[:100])
    assert ledger.spent == model.plan(6).cost
    assert model.guarantee_ is not None
    assert str(model.guarantee_).startswith("(0.5, 1e-06)")
    assert model.receipt_ is not None
    assert model.receipt_.cost == model.cost_
    with pytest.raises(BudgetExceededError):
        clone(model).set_params(epsilon=1).fit(ROWS[:100])
    back = pickle.loads(pickle.dumps(model))
    assert np.array_equal(back.transform(ROWS[:3]), model.transform(ROWS[:3]))
    with pytest.raises(RuntimeError, match="stayed behind"):
        back.fit(ROWS[:5])


def test_a_seed_is_a_rehearsal() -> None:
    seeded = PCA(2, x_norm=20, random_state=3)
    with pytest.warns(NotPrivateWarning):
        first = seeded.fit(ROWS)
    assert first.guarantee_ is None
    with pytest.raises(ValueError, match="0 sample"):
        PCA(2, x_norm=20, noise=Simulation(1)).fit(ROWS[:0])


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"bounds": "public"}, TypeError, "bounds must be"),
        ({"x_norm": 0}, ValueError, "x_norm"),
        ({"x_norm": "wide"}, ValueError, "x_norm"),
        ({"x_norm": 1, "schema": SCHEMA}, ValueError, "leave out x_norm"),
        ({"schema": {"a": 1}}, TypeError, "Schema"),
        ({"x_norm": 1, "method": "magic"}, ValueError, "method must be one of auto"),
        ({"x_norm": 1, "focus": "all"}, ValueError, "focus"),
        ({"x_norm": 1, "epsilon": 0}, ValueError, "epsilon"),
        ({"x_norm": 1, "delta": 0}, ValueError, "delta"),
        ({"x_norm": 1, "neighbours": "replace"}, ValueError, "add_remove"),
        ({"x_norm": 1, "progress": "yes"}, TypeError, "progress"),
        ({"x_norm": 1, "n_components": 6, "method": "projector"}, ValueError, "no gap"),
        ({"x_norm": 1e-141}, ValueError, "between 1e-140 and 1e140"),
        ({"x_norm": 1e200}, ValueError, "between 1e-140 and 1e140"),
        ({"x_norm": 1, "epsilon": 1e-300, "delta": 1e-300}, ValueError, "budget is too small"),
        ({"x_norm": 1, "epsilon": 1e-100, "delta": 1e-100, "method": "dual"}, ValueError, "budget is too small"),
        ({"x_norm": 1, "epsilon": 1e-20, "delta": 1e-20, "method": "projector"}, ValueError, "budget is too small"),
    ],
)
def test_bad_parameters_are_refused_before_the_charge(
    options: dict[str, Any], kind: Any, words: str, unspent: MemoryLedger
) -> None:
    with pytest.raises(kind, match=words):
        PCA(**{"n_components": 1, "ledger": unspent, **options}).fit(ROWS)


def test_a_failed_computation_is_paid_for_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("somebody")

    monkeypatch.setattr("snugdp.tables.passes.vectors.scatter.Scatter.gram", fails)
    model = PCA(1, x_norm=20).fit(ROWS)
    assert not model.released_
    with pytest.raises(NotReleased, match="private") as caught:
        model.transform(ROWS)
    assert "somebody" not in str(caught.value)
    with pytest.raises(PrivateComputationError):
        PCA(1, x_norm=20, noise=Simulation(1)).fit(ROWS)


@pytest.mark.slow
def test_the_scree_plot_shows_the_band() -> None:
    model = fitted(2)
    axes = model.scree()
    line = axes.get_lines()[0]
    assert np.array_equal(line.get_ydata(), model.spectrum_)
    (low, high) = axes.collections[0].get_datalim(axes.transData).intervaly
    assert high == pytest.approx(model.spectrum_.max() + model.spectrum_error_)
    assert low == pytest.approx(model.spectrum_.min() - model.spectrum_error_)
    assert model.scree(axes) is axes


@repeated
def test_the_band_holds_in_nineteen_of_twenty_cases() -> None:
    cases = often(20, 60)
    X = ROWS[:3000] / np.linalg.norm(ROWS[:3000], axis=1, keepdims=True)
    truth = np.linalg.eigvalsh(X.T @ X)[::-1] / 3000
    for method in ("crossing", "gauss", "dual"):
        missed = 0
        for seed in range(cases):
            model = PCA(2, epsilon=0.5, x_norm=1, method=method, rows=3000, noise=Simulation(seed)).fit(X)
            missed += bool((np.abs(model.spectrum_ - truth) > model.spectrum_error_).any())
        assert missed <= cases // 20


@pytest.mark.slow
@pytest.mark.parametrize("method", ["crossing", "projector"])
def test_two_hundred_features_take_seconds(method: str) -> None:
    X = np.random.default_rng(5).normal(size=(2000, 200)) * np.r_[10, 5, np.ones(198)]
    start = process_time()
    model = PCA(2, epsilon=4, x_norm=30, method=method).fit(X)
    assert process_time() - start < 30
    assert model.components_.shape == (2, 200)
