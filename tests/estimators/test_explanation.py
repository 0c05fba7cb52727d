"""What every column adds to a prediction: it adds up, is that of the curves, and a cell never ends in an error."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from snugdp import (
    AdditiveClassifier,
    AdditiveRegressor,
    Boolean,
    Category,
    Date,
    Explanation,
    LinearRegression,
    LogisticRegression,
    NotReleased,
    Number,
    PoissonRegression,
    Schema,
    Simulation,
)

DRAWN, ROWS = np.random.default_rng(7), 3000
SOME = pl.int_range(ROWS) % 9 > 0
TABLE = pl.DataFrame(
    {
        "age": DRAWN.uniform(0, 10, ROWS),
        "city": DRAWN.choice(["Oslo", "Rome"], ROWS, p=[0.8, 0.2]),
        "member": DRAWN.random(ROWS) < 0.3,
        "day": [dt.date(2020, 1, 1) + dt.timedelta(days=int(days)) for days in DRAWN.integers(0, 700, ROWS)],
    }
).with_columns(age=pl.when(SOME).then(pl.col("age")))
VALUES = np.sin(TABLE["age"].fill_null(0).to_numpy()) + (TABLE["city"] == "Oslo").to_numpy()
WHOLE = TABLE.with_columns(y=pl.Series(VALUES))
LABELLED = TABLE.with_columns(y=pl.Series(np.where(VALUES > 0.8, "yes", "no")))
COLUMNS: dict[str, Any] = {
    "age": Number(0, 10),
    "city": Category(["Oslo", "Rome"]),
    "member": Boolean(),
    "day": Date(dt.date(2020, 1, 1), dt.date(2022, 1, 1), parts=["month"]),
}
NUMBERS = Schema({**COLUMNS, "y": Number(-3, 3)}, target="y")
CLASSES = Schema({**COLUMNS, "y": Category(["no", "yes"])}, target="y")
COUNTS = Schema({**COLUMNS, "y": Number(0, 4)}, target="y")
ODD = pd.DataFrame(
    {
        "age": pd.Series([5.0, np.inf, -1e300, None, "ten", [], 3.0, True], dtype=object),
        "city": pd.Series(["Oslo", "Bern", None, 3, [], "Rome", {}, b"Oslo"], dtype=object),
        "member": pd.Series([True, None, "perhaps", 7, False, [], np.nan, "yes"], dtype=object),
        "day": pd.Series(
            [dt.date(2020, 5, 1), None, "never", 12, [], dt.date(1, 1, 1), "2021-02-03", 1e300], dtype=object
        ),
    }
)


def clipped(answers: Any, model: Any) -> Any:
    found = getattr(model, "bounds_", None)
    return answers if found is None or found.answers is None else np.clip(answers, *found.answers)


@pytest.mark.parametrize("kind", [AdditiveRegressor, LinearRegression])
@pytest.mark.parametrize("schema", [NUMBERS, None])
def test_contributions_and_base_are_the_prediction(kind: Any, schema: Schema | None) -> None:
    model = kind(epsilon=2, schema=schema, noise=Simulation(1)).fit(WHOLE, None if schema else "y")
    found = model.explain(TABLE)
    assert found.columns == ("age", "city", "member", "day")
    assert found.contributions.shape == (ROWS, 4)
    np.testing.assert_allclose(clipped(found.sums, model), model.predict(TABLE), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.frame["contribution=age"].to_numpy(), found.contributions[:, 0])
    np.testing.assert_array_equal(found.frame["sum"].to_numpy(), found.sums)
    empty = model.explain(TABLE.head(0))
    assert (empty.contributions.shape, empty.base) == ((0, 4), found.base)


@pytest.mark.parametrize("kind", [AdditiveClassifier, LogisticRegression])
@pytest.mark.parametrize("schema", [CLASSES, None])
def test_of_labels_they_are_the_log_odds(kind: Any, schema: Schema | None) -> None:
    model = kind(epsilon=2, schema=schema, noise=Simulation(1)).fit(LABELLED, None if schema else "y")
    np.testing.assert_allclose(model.explain(TABLE).sums, model.decision_function(TABLE), rtol=0, atol=1e-9)


def test_of_more_classes_they_are_the_score_of_one() -> None:
    three = TABLE.with_columns(y=pl.Series(np.digitize(VALUES, [0, 1]).astype(str)))
    model = AdditiveClassifier(epsilon=4, noise=Simulation(1), classes=["0", "1", "2"]).fit(three, "y")
    np.testing.assert_allclose(
        model.explain(TABLE, label="2").sums, model.decision_function(TABLE)[:, 2], rtol=0, atol=1e-9
    )
    assert model.importances(label="2").keys() == {*TABLE.columns}
    with pytest.raises(ValueError, match="label must be one of"):
        model.explain(TABLE)


def test_of_counts_they_are_the_logarithm_of_the_rate() -> None:
    model = PoissonRegression(epsilon=4, schema=COUNTS, noise=Simulation(1)).fit(WHOLE)
    np.testing.assert_allclose(np.exp(model.explain(TABLE).sums), model.predict(TABLE), rtol=1e-9)


def test_of_rows_without_names_and_without_an_intercept() -> None:
    X = DRAWN.normal(size=(500, 3))
    for constant in (True, False):
        model = LinearRegression(x_norm=3, y_bound=4, fit_intercept=constant, noise=Simulation(1)).fit(X, X[:, 0])
        found = model.explain(X)
        np.testing.assert_allclose(found.sums, model.predict(X), rtol=0, atol=1e-9)
        assert found.columns == ("x0", "x1", "x2")
        with pytest.raises(ValueError, match="single columns"):
            model.importances()


@pytest.mark.parametrize("schema", [NUMBERS, None])
def test_what_a_column_adds_is_its_curve(schema: Schema | None) -> None:
    """Also for missing cells, and beyond the knots."""
    model = AdditiveRegressor(epsilon=2, schema=schema, noise=Simulation(1)).fit(WHOLE, None if schema else "y")
    far = TABLE.head(6).with_columns(age=pl.Series([-50.0, 0.0, 5.5, None, 10.0, 90.0]))
    curve = model.curves()["age"]
    assert curve.missing is not None
    expected = curve.at(far["age"].fill_null(np.nan).to_numpy())
    np.testing.assert_allclose(model.explain(far).contributions[:, 0], expected, rtol=0, atol=1e-9)
    assert model.importances()["age"] == pytest.approx(np.ptp(curve.values))


@pytest.mark.parametrize("schema", [NUMBERS, None])
def test_an_odd_cell_is_no_error_and_changes_no_other_row(schema: Schema | None) -> None:
    model = AdditiveRegressor(epsilon=2, schema=schema, noise=Simulation(1)).fit(WHOLE, None if schema else "y")
    found = model.explain(ODD)
    assert np.isfinite(found.contributions).all()
    np.testing.assert_allclose(clipped(found.sums, model), model.predict(ODD), rtol=0, atol=1e-9)
    plain = TABLE.head(8).to_pandas().astype(object)
    whole, columns = model.explain(plain).contributions, len(found.columns)
    for place in range(8):
        changed = plain.copy()
        changed.loc[place] = ODD.loc[place]
        others = np.arange(8) != place
        moved = model.explain(changed).contributions
        np.testing.assert_array_equal(moved[others], whole[others])
        np.testing.assert_allclose(moved[place], found.contributions[place], rtol=0, atol=1e-9)
        assert moved.shape == (8, columns)


def test_a_usual_row_adds_nothing() -> None:
    """The centre of a number, and the mean of levels by their shares."""
    model = LinearRegression(epsilon=4, noise=Simulation(1)).fit(WHOLE, "y")
    found = model.explain(TABLE)
    bounds: Any = model.bounds_
    shares = np.array(bounds["city"].shares) / sum(bounds["city"].shares)
    cities = [found.contributions[(TABLE["city"] == city).to_numpy(), 1].mean() for city in bounds["city"].values]
    assert abs(shares @ cities) < 1e-9
    centre = TABLE.head(1).with_columns(age=pl.lit(bounds["age"].centre))
    assert abs(model.explain(centre).contributions[0, 0]) < 1e-9
    assert abs(found.base - np.mean(VALUES)) < 0.3


def test_a_refused_model_explains_nothing() -> None:
    model = LinearRegression(epsilon=0.01, delta=1e-12, noise=Simulation(1)).fit(WHOLE.head(5), "y")
    assert not model.released_
    for ask in (lambda: model.explain(TABLE), model.importances):
        with pytest.raises(NotReleased):
            ask()


def test_what_is_shown_has_the_largest_first_and_is_harmless() -> None:
    names = ("<b>", *(f"x{place}" for place in range(20)))
    many = Explanation(names, 1.0, np.tile(np.arange(21.0), (7, 1)))
    lines = repr(many).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["base", "x19", "x18"]
    assert lines[13].startswith("9 other columns")
    assert lines[14].split() == ["sum", *["211"] * 5]
    assert lines[15] == "and 2 more rows"
    assert list(many.largest(6))[:2] == ["x19", "x18"]
    few = Explanation(("<b>",), 1.0, np.array([[2.0]]))
    assert "&lt;b&gt;" in few._repr_html_()
    assert "<b>" not in few._repr_html_()
    assert repr(Explanation(("age",), 1.0, np.empty((0, 1)))).split() == ["base", "age", "sum"]
