"""Missing cells, where a private mean starts, and the ends of what is allowed: bounds, budgets, tables without rows."""

from __future__ import annotations

import math
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from snugdp import PCA, Boolean, Category, Number, Schema, Simulation
from snugdp.estimators.pca.pca import METHODS
from snugdp.secrecy.secret import unwrap
from snugdp.tables.layouts.points import centred
from tests.effort import sampled
from tests.mechanisms.scripted import Scripted

ROWS = np.random.default_rng(0).normal(size=(500, 6)) * [4, 2, 1, 0.3, 0.3, 0.3] / 20
GAPS = Schema({"a": Number(0, 10), "b": Number(-5, 5), "d": Boolean(), "c": Category(["x", "y"])})
GAPS_TYPES = {"a": pl.Float64, "b": pl.Float64, "d": pl.Boolean}


class Silent(Simulation):
    """No noise at all: what would be released but for it."""

    def add_integers(self, values: Any, law: Any) -> list[int]:
        return list(unwrap(values))


@pytest.mark.parametrize("native", [lambda t: t, lambda t: t.to_pandas(), lambda t: t.to_arrow()])
def test_a_missing_number_under_a_schema_is_the_centre(native: Any) -> None:
    nothing = native(pl.DataFrame({"a": [None, math.nan], "b": [None, None], "d": [None, None]}, GAPS_TYPES))
    schema = Schema({name: GAPS.columns[name] for name in "abd"})
    for center in ("bounds", [9, 1, 0.9]):
        model = PCA(1, epsilon=8, schema=schema, center=center, noise=Silent(0)).fit(nothing)
        assert (model.spectrum_ == 0).all()
        assert (model.transform(nothing) == 0).all()


def test_only_missing_cells_are_the_centre() -> None:
    """Cell by cell: what is there is the scaled value less the centre, whatever else its row or column lacks."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "a": rng.uniform(-3, 13, 400),
            "b": rng.uniform(-6, 6, 400),
            "d": rng.choice([0.0, 1.0, 7.0, math.nan], 400),
            "c": rng.choice(["x", "y", "z"], 400),
        }
    )
    table.loc[rng.random(400) < 0.3, "a"] = math.nan
    table.loc[0, "a"], table.loc[1, "a"] = math.inf, -math.inf
    table.loc[2, "c"] = None
    shift = (0.4, -0.3, 0.1, 0.2, 0.05)
    layout = centred(Schema(GAPS.columns, intercept=False), shift)
    (rows, _), *more = layout.blocks(nw.from_native(table, eager_only=True))
    assert not more
    a, b, d = (table[name].to_numpy() for name in "abd")
    wanted = np.column_stack(
        [
            np.where(np.isnan(a), 0.0, np.clip((a - 5) / 10, -0.5, 0.5) - 0.4),
            np.clip(b / 10, -0.5, 0.5) + 0.3,
            np.where(d == 1, 0.4, np.where(d == 0, -0.6, 0.0)),
            (table.c == "x") / 2 - 0.2,
            (table.c == "y") / 2 - 0.05,
        ]
    )
    assert np.allclose(rows, wanted, rtol=0, atol=1e-15)
    for place in range(0, 400, 37):  # and row by row it is the same
        (alone, _), *_ = layout.blocks(nw.from_native(table.iloc[[place]], eager_only=True))
        assert np.array_equal(alone[0], rows[place])


class Kept(Scripted):
    """A recorder that a fit does not copy."""

    def __deepcopy__(self, memo: Any) -> Kept:
        return self


@sampled(4)
@pytest.mark.parametrize("center", ["private", [9, -4, 0.9, 0.3, 0.7]])
@pytest.mark.parametrize("method", ["crossing", "gauss"])
def test_no_row_with_missing_cells_moves_a_fit_further_than_it_costs(method: str, center: Any) -> None:
    rng, worst = np.random.default_rng(8), 0.0
    table = pd.DataFrame({"a": rng.uniform(0, 10, 60), "b": rng.uniform(-5, 5, 60), "d": rng.choice([0.0, 1.0], 60)})
    table["c"] = rng.choice(["x", "y", "z"], 60)
    for a, b, d, c in ((10, 5, 1, "x"), (-99, math.nan, math.nan, "y"), (math.nan, 9, 0, None), (0, 5, 0, "z")):
        more = pd.concat([table, pd.DataFrame({"a": [a], "b": [b], "d": [float(d)], "c": [c]})], ignore_index=True)
        for one, other in ((table, more), (more, table)):
            first = Kept(seed=1)
            model = PCA(1, schema=GAPS, center=center, method=method, noise=first).fit(one)
            second = Kept(first.said)
            PCA(1, schema=GAPS, center=center, method=method, noise=second).fit(other)
            square = first.distance_squared(second)
            assert square <= model.cost_.mu_squared
            worst = max(worst, float(square / model.cost_.mu_squared))
    assert worst > 0.5


def test_arrays_and_schemas_agree_on_missing_cells() -> None:
    X = np.random.default_rng(6).uniform(-1, 1, (500, 3))
    X[::3, 0] = X[::5, 1] = math.nan
    schema = Schema({name: Number(-1, 1) for name in "abc"})
    under = PCA(2, epsilon=8, schema=schema, center=[0.5, -0.2, 0.1], noise=Silent(0), rows=500)
    under.fit(pd.DataFrame(X, columns=list("abc")))
    plain = PCA(2, epsilon=8, x_norm=math.sqrt(3), center=[0.5, -0.2, 0.1], noise=Silent(0), rows=500).fit(X)
    assert under.spectrum_ == pytest.approx(plain.spectrum_, rel=1e-4)


def test_a_private_mean_is_that_of_rows_shortened_from_zero() -> None:
    """As documented: too short a bound gives a point towards the rows, and missing cells count as 0 in the mean."""
    rows = np.random.default_rng(7).normal([1000, 0], 1, size=(2000, 2))
    far = PCA(1, epsilon=8, x_norm=10, center="private", noise=Silent(0)).fit(rows)
    assert far.mean_ == pytest.approx([10, 0], abs=0.01)
    near = PCA(1, epsilon=8, x_norm=10, center="private", noise=Silent(0)).fit(rows - [1000, 0])
    assert near.mean_ == pytest.approx(rows.mean(axis=0) - [1000, 0], abs=0.01)
    rows[::2, 0] = math.nan
    half = PCA(1, epsilon=8, x_norm=2000, center="private", noise=Silent(0)).fit(rows)
    assert half.mean_ == pytest.approx([500, 0], abs=1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("x_norm", [1e-140, 1e140])
def test_the_widest_bounds_and_the_smallest_budgets_give_finite_numbers(method: str, x_norm: float) -> None:
    for epsilon, center in ((8, "bounds"), (2e-14, "private")):
        model = PCA("auto", epsilon, 1e-15, x_norm=x_norm, method=method, center=center, noise=Simulation(1))
        model.fit(ROWS * x_norm)
        assert np.allclose(np.linalg.norm(model.components_, axis=1), 1)
        for found in (model.explained_variance_, model.spectrum_, model.spectrum_error_, model.mean_):
            assert np.isfinite(found).all()
        assert (np.asarray(model.spectrum_) != 0).all()
        assert np.isfinite(model.inverse_transform(model.transform(ROWS[:5] * x_norm))).all()


def test_an_empty_list_has_one_column() -> None:
    """An error would tell that nobody is there."""
    nothing: list[Any] = [[], (), np.array([])]
    for empty in nothing:
        assert PCA(1, x_norm=1).fit(empty).components_.shape == (1, 1)
    model = PCA(1, x_norm=1).fit(np.empty((0, 3)))
    with pytest.raises(ValueError, match="features"):
        model.transform([])


@pytest.mark.parametrize("method", ["auto", "gauss", "projector", "dual", "crossing"])
def test_a_budget_beyond_the_floats_is_refused_in_words(method: str) -> None:
    with pytest.raises(ValueError, match="below 1e200"):
        PCA(n_components=1, epsilon=1e308, delta=1e-6, x_norm=1, method=method).plan(n_features=2)
    assert PCA(n_components=1, epsilon=1e199, delta=1e-6, x_norm=1, method=method).plan(n_features=2).cost
