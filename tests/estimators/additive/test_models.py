"""Additive models: curves between given and found bounds, what is predicted, shown, saved and refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import snugdp
from snugdp import (
    AdditiveClassifier,
    AdditiveRegressor,
    Boolean,
    Budget,
    Category,
    EffectCurve,
    LinearRegression,
    LogisticRegression,
    MemoryLedger,
    Number,
    Schema,
    Simulation,
    Spline,
)
from snugdp.estimators.additive.shrinkage import _kept
from snugdp.mechanisms.bounds.preparation import TablePreparation, known_columns
from snugdp.tables.found import FoundBounds, FoundNumber
from snugdp.tables.layouts.curved import Curves
from snugdp.tables.sources import TableError

DRAWN = np.random.default_rng(25)
AGES = DRAWN.uniform(0, 10, 4000)
CITIES = DRAWN.choice(["Oslo", "Rome"], 4000)
WAVES = np.sin(AGES) + 0.5 * (CITIES == "Oslo") + DRAWN.normal(0, 0.1, 4000)
LABELS = np.where(DRAWN.random(4000) < 1 / (1 + np.exp(-4 * np.sin(AGES))), "yes", "no")
TABLE = pl.DataFrame({"age": AGES, "city": CITIES, "y": WAVES})
LABELLED = TABLE.with_columns(y=pl.Series(LABELS))
PUBLIC = Schema({"age": Number(0, 10), "city": Category(["Oslo", "Rome"]), "y": Number(-3, 3)}, target="y")


def error(model: Any) -> float:
    return float(np.mean((model.predict(TABLE) - WAVES) ** 2))


def test_a_curve_is_found_where_a_line_sees_little() -> None:
    curve = AdditiveRegressor(epsilon=2, schema=PUBLIC, noise=Simulation(1)).fit(TABLE)
    line = LinearRegression(epsilon=2, schema=PUBLIC, noise=Simulation(1)).fit(TABLE)
    assert error(curve) < 0.05
    assert error(line) > 0.2
    ages = curve.curves()["age"]
    assert ages.knots == Spline(0, 10).knots
    low, high = ages.band()
    assert (low < ages.values).all()
    assert (ages.values < high).all()
    truth = np.sin(ages.knots) - np.sin(ages.knots).mean()
    assert np.mean((low < truth) & (truth < high)) > 0.8
    assert np.diff(ages.band(0.5), axis=0).max() < np.diff(ages.band(), axis=0).max()
    assert np.abs(ages.at([1.5, 4.7]) - ages.at([1.5, 4.7]).mean() - [1, -1]).max() < 0.3


def test_bounds_are_found_and_knots_are_where_rows_are() -> None:
    model = AdditiveRegressor(epsilon=2, noise=Simulation(2)).fit(TABLE, "y")
    assert error(model) < 0.05
    knots = model.curves()["age"].knots
    assert -1 < knots[0] < 2
    assert 8 < knots[-1] < 12
    again = AdditiveRegressor(epsilon=1, bounds=model.bounds_, noise=Simulation(3)).fit(TABLE, "y")
    assert again.curves()["age"].knots == knots
    assert model.predict(TABLE.head(3)).shape == (3,)


def test_labels_have_curves_too() -> None:
    model = AdditiveClassifier(epsilon=2, noise=Simulation(1)).fit(LABELLED, "y")
    line = LogisticRegression(epsilon=2, noise=Simulation(1)).fit(LABELLED, "y")
    truth = LABELS == "yes"

    def loss(one: Any) -> float:
        chances = one.predict_proba(LABELLED)[:, 1]
        return -float(np.mean(np.log(np.where(truth, chances, 1 - chances))))

    assert model.classes_.tolist() == ["no", "yes"]
    assert loss(model) < 0.5 < loss(line)
    assert model.curves()["age"].at([1.5])[0] > model.curves()["age"].at([4.7])[0] + 2


def test_more_than_two_classes_have_curves_each() -> None:
    three = TABLE.with_columns(y=pl.Series(np.digitize(AGES, [3, 7]).astype(str)))
    model = AdditiveClassifier(epsilon=4, noise=Simulation(1), classes=["0", "1", "2"]).fit(three, "y")
    assert np.mean(model.predict(three) == three["y"].to_numpy()) > 0.8
    with pytest.raises(ValueError, match="label must be one of"):
        model.curves()
    assert model.curves("1")["age"].at([5.0])[0] > model.curves("1")["age"].at([0.5])[0]


def test_a_linear_column_stays_a_line() -> None:
    model = AdditiveRegressor(epsilon=2, schema=PUBLIC, linear=["age"], noise=Simulation(1)).fit(TABLE)
    assert model.curves() == {}
    assert model.coef_names_[0] == "age"
    steps = np.diff(model.predict(pl.DataFrame({"age": [0.0, 4.0, 8.0], "city": ["Oslo"] * 3})))
    assert steps[0] == pytest.approx(steps[1]) == pytest.approx(4 * model.coef_[0])


def test_what_effects_are_can_be_declared() -> None:
    def fitted(effects: str, rows: int = 4000) -> AdditiveRegressor:
        return AdditiveRegressor(2, schema=PUBLIC, effects=effects, noise=Simulation(1)).fit(TABLE.head(rows))

    lines, curves = fitted("line"), fitted("curve")
    ages = lines.curves()["age"]
    assert len(ages.knots) == 2
    assert ages.slopes[0] == ages.slopes[1] == pytest.approx(lines.coef_[0])
    with pytest.raises(ValueError, match="effects are lines"):
        ages.band()
    steps = np.diff(lines.predict(pl.DataFrame({"age": [1.0, 4.0, 6.0], "city": ["Oslo"] * 3})))
    assert steps == pytest.approx(np.diff(ages.at([1.0, 4.0, 6.0])))
    assert len(curves.curves()["age"].knots) == 17
    assert curves.curves()["age"].band()[0].shape == (17,)
    few = 80  # rows times mu is below 200
    assert len(fitted("auto", few).curves()["age"].knots) == 2
    assert len(fitted("both", few).curves()["age"].knots) == 17
    assert lines.cost_ == fitted("line", few).cost_
    assert fitted("auto").cost_ == fitted("auto", few).cost_
    assert error(fitted("auto")) < 0.05 < error(lines)
    np.testing.assert_array_equal(fitted("auto").predict(TABLE), fitted("both").predict(TABLE))


def test_lines_of_many_columns_are_whitened_as_in_a_linear_model_where_they_were_declared() -> None:
    wide = DRAWN.normal(size=(2000, 26))
    released = {
        effects: set(AdditiveRegressor(2, effects=effects, noise=Simulation(1)).fit(wide, wide[:, 0]).details_)
        for effects in ("line", "auto")
    }
    assert "radius" in released["line"] - released["auto"]


def test_a_line_because_of_few_rows_says_what_a_missing_cell_does() -> None:
    gaps = TABLE.with_columns(age=pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise(pl.col("age")))
    model = AdditiveRegressor(2, schema=PUBLIC, effects="line", noise=Simulation(1)).fit(gaps)
    curve, asked = model.curves()["age"], pl.DataFrame({"age": [2.0, None], "city": ["Oslo"] * 2})
    assert curve.missing is not None
    assert np.diff(model.predict(asked))[0] == pytest.approx(curve.missing - curve.at([2.0])[0])


def test_what_is_wrong_is_said_before_the_charge() -> None:
    ledger = MemoryLedger(4, 1e-5)
    for schema, target in ((PUBLIC, None), (None, "y")):
        for wrong, kind, words in (
            ({"cells": 0}, ValueError, "cells must be"),
            ({"cells": 2.5}, ValueError, "cells must be"),
            ({"linear": "age"}, TypeError, "list of names"),
            ({"effects": "bent"}, ValueError, "effects must be"),
            ({"linear": ["nobody"]}, ValueError, '"nobody"'),
        ):
            with pytest.raises(kind, match=words):
                AdditiveRegressor(schema=schema, ledger=ledger, **wrong).fit(TABLE, target)
    wide = np.zeros((3, 1000))
    with pytest.raises(ValueError, match="fewer cells"):
        AdditiveRegressor(ledger=ledger).fit(wide, [0, 1, 2])
    assert ledger.spent == MemoryLedger(4, 1e-5).spent


def test_a_missing_cell_has_an_effect_of_its_own_unless_told_otherwise() -> None:
    gaps = TABLE.with_columns(age=pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise(pl.col("age")))
    moved = gaps.with_columns(y=pl.when(pl.col("age").is_null()).then(2.5).otherwise(pl.col("y")))
    model = AdditiveRegressor(epsilon=2, schema=PUBLIC, noise=Simulation(1)).fit(moved)
    assert "age is missing" in model.coef_names_
    assert "age=(none)" not in model.coef_names_
    curve = model.curves()["age"]
    assert curve.missing is not None
    assert curve.at([np.nan])[0] == curve.missing > curve.at([1.5])[0]
    declared = Schema(dict(PUBLIC.columns), target="y", missing={"age": "drop"})
    assert "age is missing" not in AdditiveRegressor(schema=declared, noise=Simulation(1)).fit(moved).coef_names_
    plain = AdditiveRegressor(schema=PUBLIC, missing="centre", noise=Simulation(1)).fit(moved)
    assert "age is missing" not in plain.coef_names_
    assert plain.curves()["age"].missing is None


@pytest.mark.parametrize("schema", [PUBLIC, None])
def test_a_model_is_saved_and_read(schema: Schema | None, tmp_path: Path) -> None:
    model = AdditiveRegressor(schema=schema, cells=5, noise=Simulation(1)).fit(TABLE, None if schema else "y")
    snugdp.save(model, tmp_path / "model.json")
    loaded = snugdp.load(tmp_path / "model.json")
    assert isinstance(loaded, AdditiveRegressor)
    assert loaded.cells == 5
    np.testing.assert_array_equal(loaded.predict(TABLE), model.predict(TABLE))
    assert loaded.curves()["age"].knots == model.curves()["age"].knots


def test_an_array_has_curves_by_the_numbers_of_its_columns() -> None:
    X = np.column_stack([AGES, DRAWN.normal(size=len(AGES))])
    model = AdditiveRegressor(epsilon=2, noise=Simulation(1)).fit(X, np.sin(AGES))
    assert set(model.curves()) == {"x0", "x1"}
    assert np.abs(model.predict(X) - np.sin(AGES)).mean() < 0.2
    assert model.predict(X[:0]).shape == (0,)


@pytest.mark.parametrize(
    "column",
    [
        [1.0] * 500,
        [None] * 500,
        [1e300, *[1.0 + i / 100 for i in range(499)]],
        [1e-300 * i for i in range(500)],
        [1e15 + i % 2 for i in range(500)],
        ["?", [], *[i / 100 for i in range(498)]],
    ],
)
def test_hostile_columns_end_in_an_outcome(column: list[Any]) -> None:
    ages = np.arange(500) / 50
    table = pd.DataFrame({"odd": pd.Series(column, dtype=object), "age": ages, "y": np.sin(ages)})
    ledger = MemoryLedger(4, 1e-5)
    model = AdditiveRegressor(epsilon=4, ledger=ledger).fit(table, "y")
    assert ledger.spent.epsilon == 4
    if model.released_:
        assert np.isfinite(model.predict(table)).all()


def test_a_row_changes_no_other_row() -> None:
    """Under found bounds: the image of a row is a function of that row and of what was released."""
    model = AdditiveRegressor(epsilon=2, noise=Simulation(1)).fit(TABLE, "y")
    rows = TABLE.head(20).drop("y")
    whole = model.predict(rows)
    for place, odd in itertools.product((0, 7), (np.nan, np.inf, -np.inf, 1e300)):
        changed = rows.with_row_index().with_columns(
            age=pl.when(pl.col("index") == place).then(odd).otherwise(pl.col("age"))
        )
        others = np.arange(20) != place
        np.testing.assert_array_equal(model.predict(changed.drop("index"))[others], whole[others])


def test_curves_are_functions_of_the_place_alone() -> None:
    curve = EffectCurve("age", (0.0, 1.0, 2.0), np.array([1.0, -1.0, 0.0]), 5.0)
    np.testing.assert_array_equal(curve.at([-9, 0.5, 9, np.nan]), [1.0, 0.0, 0.0, 5.0])
    falling = curve.monotone(increasing=False)
    assert (np.diff(falling.values) <= 0).all()
    assert falling.values.sum() == pytest.approx(curve.values.sum())
    assert (falling.name, falling.knots, falling.missing) == (curve.name, curve.knots, curve.missing)


def test_a_smooth_curve_keeps_its_line_and_its_mean() -> None:
    knots = tuple(float(k) for k in range(9))
    line, wiggle = np.arange(9.0) - 4, np.array([1.0, -1.0] * 4 + [1.0])
    curve = EffectCurve("age", knots, line + wiggle, deviations=np.ones(9))
    smooth = curve.smooth(2)
    assert np.abs(np.diff(smooth.values, 2)).max() < 0.2 < np.abs(np.diff(curve.values, 2)).max()
    assert smooth.values.sum() == pytest.approx(curve.values.sum())
    np.testing.assert_allclose(EffectCurve("age", knots, line).smooth(5).values, line, atol=1e-9)
    np.testing.assert_array_equal(curve.smooth(0).values, curve.values)
    np.testing.assert_array_equal(smooth.deviations, curve.deviations)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="reach"):
            curve.smooth(wrong)


def test_predictions_are_the_sum_of_the_curves() -> None:
    model = AdditiveRegressor(epsilon=2, schema=PUBLIC, noise=Simulation(1)).fit(TABLE)
    curve = model.curves()["age"]
    oslo = pl.DataFrame({"age": [2.0, 7.0, 11.0], "city": ["Oslo"] * 3})
    np.testing.assert_allclose(np.diff(model.predict(oslo)), np.diff(curve.at(oslo["age"])), atol=1e-9)


def straight(rows: int, seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng([25, seed])
    X = draw.normal(size=(rows, 8))
    return X, X @ np.linspace(1, -1, 8) + draw.normal(size=rows)


def test_a_column_of_one_value_does_not_move_the_constant() -> None:
    """Its bends share the constant: where they are shrunk alone, predictions are off for all rows."""
    draw = np.random.default_rng(14)
    X = np.column_stack([draw.normal(size=(8000, 4)), np.where(draw.random(8000) < 0.001, -0.05, 0.0)])
    y = 3 + X[:, 0] + np.abs(X[:, 1]) + draw.normal(0, 0.5, 8000)
    for seed in (1, 2):
        model = AdditiveRegressor(epsilon=1, noise=Simulation(seed)).fit(X, y)
        assert abs(np.mean(model.predict(X) - y)) < 0.15


def test_bends_are_kept_if_one_column_bends_surely_or_noise_is_small() -> None:
    assert _kept(0.0, 0.1) < 0.01
    assert _kept(0.5, 0.1) > 0.8
    assert 0.6 < _kept(0.0, 60.0) < 0.7
    assert _kept(1.0, 0.0) == 1


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_straight_effects_stay_lines(epsilon: float) -> None:
    """The default: bends that look like noise are shrunk, so that little is lost to a linear model."""
    X, y = straight(9000, 1)
    curve = AdditiveRegressor(epsilon=epsilon, noise=Simulation(1)).fit(X[:6000], y[:6000])
    line = LinearRegression(epsilon=epsilon, noise=Simulation(1)).fit(X[:6000], y[:6000])
    lost = [np.mean((one.predict(X[6000:]) - y[6000:]) ** 2) / np.var(y[6000:]) for one in (curve, line)]
    assert lost[0] < lost[1] + 0.02
    bent = AdditiveRegressor(epsilon=epsilon, noise=Simulation(1)).fit(X, np.abs(X[:, 0]) + X[:, 1] + y / 10)
    curves = bent.curves()
    assert curves["x0"].at([-1.5, 1.5]).min() > curves["x0"].at([0.0])[0] + 0.8
    assert abs(curves["x1"].at([-1.5, 1.5]).mean() - curves["x1"].at([0.0])[0]) < 0.2


def test_what_is_shrunk_is_a_function_of_what_was_released(tmp_path: Path) -> None:
    model = AdditiveRegressor(noise=Simulation(1)).fit(TABLE, "y")
    snugdp.save(model, tmp_path / "model.json")
    read = snugdp.load(tmp_path / "model.json").curves()["age"]
    assert isinstance(read, EffectCurve)
    np.testing.assert_array_equal(read.values, model.curves()["age"].values)
    np.testing.assert_array_equal(read.deviations, model.curves()["age"].deviations)


def test_a_curve_goes_on_beyond_its_knots() -> None:
    draw = np.random.default_rng(5)
    X = draw.lognormal(0, 1, (8000, 2))
    y = X[:, 0] + draw.normal(0, 0.2, 8000)
    rises = []
    for seed in (1, 2, 3):
        model = AdditiveRegressor(epsilon=4, noise=Simulation(seed)).fit(X, y)
        curve = model.curves()["x0"]
        far = np.array([curve.knots[-1], curve.knots[-1] + 2])
        rises.append(float(np.diff(curve.at(far))[0]))
        assert rises[-1] == pytest.approx(2 * curve.slopes[1])
    assert 1.5 < np.median(rises) < 2.5  # the truth is 2; single fits have more noise where few rows are
    inside = np.array([curve.knots[0], curve.knots[8]])
    predicted = model.predict(np.column_stack([inside, np.ones(2)]))
    assert np.diff(predicted)[0] == pytest.approx(np.diff(curve.at(inside))[0])


def test_bands_need_a_level_and_noise_that_is_known() -> None:
    curve = EffectCurve("age", (0.0, 1.0), np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="no band"):
        curve.band()
    with pytest.raises(ValueError, match="level"):
        EffectCurve("age", (0.0, 1.0), np.array([1.0, -1.0]), deviations=np.ones(2)).band(95)
    rising = EffectCurve("age", (0.0, 1.0), np.array([1.0, 2.0]), slopes=(-1.0, 0.5), bounds=(-2.0, 3.0))
    assert rising.at([-9, -1, 2, 9]).tolist() == [3.0, 2.0, 2.5, 3.0]
    assert rising.monotone().slopes == (0.0, 0.5)


@pytest.mark.parametrize("schema", [PUBLIC, None])
def test_a_file_that_cannot_be_read_costs_nothing(schema: Schema | None, tmp_path: Path) -> None:
    """With public bounds nothing is looked for, and the first pass comes before the charge all the same."""
    path, ledger = tmp_path / "people.csv", MemoryLedger(10, "1e-2")
    TABLE.write_csv(path)
    path.write_text(path.read_text() + '1,Rome,3,4,5\n"x\n')
    with pytest.raises(TableError):
        AdditiveRegressor(schema=schema, ledger=ledger).fit(path, None if schema else "y")
    assert ledger.spent.delta_at(0) == 0


def test_no_row_has_more_entries_than_were_planned() -> None:
    """Every number may have a slope beyond each end, and missing cells, whatever is found of it."""
    numbers = {f"x{i}": Number() for i in range(40)}
    schema = Schema({**numbers, "y": Number(0, 1)}, target="y", missing="indicator")
    preparation = TablePreparation(schema, Budget(1, 1e-6), joint=True, curves=Curves(64, (), 1.0))
    wide = FoundNumber(-9, 9, 0.0, 1.0, hull=(-2, 2), missing=0.1)
    found = FoundBounds(schema, {**known_columns(schema), **dict.fromkeys(numbers, wide)}, 1e4, 10.0)
    assert len(preparation.layout(found).features) + preparation.most_levels <= 8192


def test_a_boolean_has_no_curve_where_somebody_declared_it(tmp_path: Path) -> None:
    """Types of a frame in memory do not count: one cell may have made them. There a boolean is a number, 0 and 1."""
    table = pl.DataFrame({"age": AGES, "member": AGES > 3, "y": 2.0 * (AGES > 3)})
    table.write_parquet(tmp_path / "table.parquet")
    schema = Schema({"age": Number(), "member": Boolean(), "y": Number()}, target="y")
    file = AdditiveRegressor(epsilon=2, noise=Simulation(1)).fit(tmp_path / "table.parquet", "y")
    declared = AdditiveRegressor(epsilon=2, schema=schema, noise=Simulation(1)).fit(table)
    for model in (file, declared):
        assert model.curves().keys() == {"age"}
        assert "member" in model.coef_names_
    assert "member" in AdditiveRegressor(epsilon=2, noise=Simulation(1)).fit(table, "y").curves()
