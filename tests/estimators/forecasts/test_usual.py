"""How rows lie between their bounds: what is known of it moves a forecast, and what makes no sense is refused."""

from typing import Any

import pytest

import snugdp
from snugdp.estimators.forecasts.forecast import forecast
from snugdp.estimators.forecasts.usual import CURVED, CURVED_FOUND, EVEN, between_bounds
from snugdp.propose.forecast import ErrorOf, Note
from snugdp.tables.losses.losses import Logistic, SoftHinge

SCHEMA = snugdp.Schema(
    {"a": snugdp.Number(0, 10), "b": snugdp.Number(-1, 1), "mark": snugdp.Boolean(), "y": snugdp.Number(0, 200)},
    target="y",
)


def expected(spread: Any = None, **given: Any) -> float:
    model = snugdp.LinearRegression(1, 1e-6, schema=SCHEMA, **given)
    return forecast(model, 5_000, spread=spread, factors=(), more=()).asked.error


def test_what_is_not_told_is_as_usual() -> None:
    assert expected({"y": 0.17, "a": 0.1}) == pytest.approx(expected())
    assert expected({"mark": 0.01}) == pytest.approx(expected())  # only numbers count
    assert between_bounds(SCHEMA, {"a": 0.3, "b": 0.1}).note == between_bounds(SCHEMA, {"b": 0.1}).note


def test_noise_grows_with_the_spread_of_the_target_and_falls_with_that_of_the_narrowest_column() -> None:
    assert expected({"y": 0.05}) < expected({"y": 0.1}) < expected({"y": 0.2})
    assert expected({"a": 0.2, "b": 0.01}) > expected({"a": 0.2, "b": 0.1}) > expected({"a": 0.2})
    assert expected(0.1) == pytest.approx(expected({"a": 0.1, "b": 0.1, "y": 0.1}))


@pytest.mark.parametrize(
    "wrong", [0, -0.1, 0.6, 1e-9, float("nan"), {"y": 0}, {"y": 1e-6}, {"mark": -5}, {"nobody": 0.1}]
)
def test_what_is_no_spread_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="spread"):
        expected(wrong)


@pytest.mark.parametrize(
    "model",
    [
        snugdp.LinearRegression(1, 1e-6),
        snugdp.LinearRegression(1, 1e-6, method="adassp", schema=SCHEMA),
        snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1),
        snugdp.LogisticRegression(1, 1e-6, x_norm=1, classes=[0, 1]),
        snugdp.PCA(1, 1, 1e-6, x_norm=1),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'method', '')}",
)
def test_spreads_are_for_lines_between_public_bounds(model: Any) -> None:
    with pytest.raises(ValueError, match="leave it out"):
        forecast(model, 1_000, n_features=3, spread=0.1)


def test_every_forecast_says_what_it_assumes() -> None:
    between, open_ = snugdp.LinearRegression(1, 1e-6, schema=SCHEMA), snugdp.LinearRegression(1, 1e-6)
    assert "as they usually lie between bounds" in str(between.plan(rows=5_000))
    assert "0.05 of the distance between its bounds" in str(between.plan(rows=5_000, spread={"y": 0.05}))
    assert "bounds are found" in str(open_.plan(3, 5_000))
    assert "fill their bounds evenly" in str(snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1).plan(3, 5_000))


def test_a_typical_prediction_moves_less_than_the_root_mean_square() -> None:
    model, told = snugdp.LinearRegression(1, 1e-6, schema=SCHEMA), (None, {"y": 0.05}, {"y": 0.3, "b": 0.5})
    for spread in told:
        found = forecast(model, 5_000, spread=spread, factors=(), more=()).asked
        assert found.typical is not None
        assert 0 < found.typical <= found.error
    loose, tight = (forecast(model, 5_000, spread={"y": each}).asked.typical for each in (0.2, 0.05))
    assert loose is not None
    assert tight is not None
    assert tight < loose / 2
    assert "a typical prediction moves by about" in str(model.plan(rows=5_000))
    evenly = snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1).plan(3, 5_000)
    assert evenly.forecast.fits[0].typical is None
    assert "typical prediction" not in str(evenly)


LABELS = {
    "two": snugdp.LogisticRegression(
        schema=snugdp.Schema({"a": snugdp.Number(0, 1), "y": snugdp.Boolean()}, target="y")
    ),
    "more": snugdp.LogisticRegression(
        schema=snugdp.Schema({"a": snugdp.Number(0, 1), "y": snugdp.Category((*"abc",))}, target="y")
    ),
    "counts": snugdp.PoissonRegression(
        schema=snugdp.Schema({"a": snugdp.Number(0, 1), "y": snugdp.Number(0, 9)}, target="y")
    ),
    "found labels": snugdp.LogisticRegression(),
    "found counts": snugdp.PoissonRegression(),
    "loss": snugdp.GLM(Logistic(), schema=snugdp.Schema({"a": snugdp.Number(0, 1), "y": snugdp.Boolean()}, target="y")),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_and_counts_have_less_noise_than_rows_that_fill_their_bounds(name: str) -> None:
    model = LABELS[name]
    given = {} if model.schema is not None else {"n_features": 1}
    found = forecast(model, 5_000, factors=(), more=(), **given)
    assert found.like == Note("like-usual-scores")
    assert found.asked.typical is not None
    assert found.asked.typical < found.asked.error
    assert "as they usually are" in str(model.plan(rows=5_000, **given))
    assert model.plan(rows=5_000, **given).forecast.fits[0].error == pytest.approx(found.asked.error)


@pytest.mark.parametrize(
    "model",
    [
        snugdp.LogisticRegression(x_norm=1, classes=[0, 1]),
        snugdp.LogisticRegression(method="objective", schema=LABELS["two"].schema),
        snugdp.LogisticRegression(multi_class="ovr", schema=LABELS["more"].schema),
        snugdp.LogisticRegression(inference=True, schema=LABELS["two"].schema),
        snugdp.GLM(SoftHinge(0.5), schema=LABELS["two"].schema),
        snugdp.AdditiveClassifier(schema=LABELS["two"].schema),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.method}",
)
def test_what_was_not_tried_is_for_rows_that_fill_their_bounds(model: Any) -> None:
    found = forecast(model, 5_000, n_features=1 if model.schema is None else None, factors=(), more=())
    assert found.like is None
    assert found.asked.typical is None


def test_curves_are_as_usual_too_and_otherwise_between_found_bounds() -> None:
    between, open_ = snugdp.AdditiveRegressor(1, 1e-6, schema=SCHEMA), snugdp.AdditiveRegressor(1, 1e-6)
    assert between._usual(None) is CURVED
    assert open_._usual(None) is CURVED_FOUND
    assert snugdp.AdditiveRegressor(1, 1e-6, method="objective", schema=SCHEMA)._usual(None) is EVEN
    assert "and curves" in str(open_.plan(2, 5_000))


@pytest.mark.parametrize("kind", [snugdp.LinearRegression, snugdp.AdditiveRegressor])
def test_errors_are_in_units_of_a_target_with_bounds_whatever_is_found_of_the_columns(kind: Any) -> None:
    columns = {"a": snugdp.Number(), "y": snugdp.Number(0, 1000)}
    wide = snugdp.Schema(columns, target="y")
    one = snugdp.Schema({**columns, "y": snugdp.Number(0, 1)}, target="y")
    first, second = (forecast(kind(1, 1e-6, schema=schema), 5_000, factors=(), more=()) for schema in (one, wide))
    assert first.error_of is second.error_of is ErrorOf.PREDICTION
    assert second.target == "y"
    assert second.asked.error == pytest.approx(1000 * first.asked.error)
    open_ = snugdp.Schema({"a": snugdp.Number(), "y": snugdp.Number()}, target="y")
    assert forecast(kind(1, 1e-6, schema=open_), 5_000, factors=(), more=()).error_of is ErrorOf.STANDARDISED
