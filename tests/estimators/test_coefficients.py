"""What coefficients mean: the same in every fit, in whatever units, and the same function as in predictions."""

import copy
from typing import Any

import numpy as np
import polars as pl
import pytest

from snugdp import (
    Boolean,
    Category,
    LinearRegression,
    LogisticRegression,
    Number,
    PoissonRegression,
    Schema,
    Simulation,
)
from snugdp.estimators.files import model_file
from tests.effort import sampled

CITIES = ["Bern", "Oslo", "Rome"]
CITY = Category(CITIES, reference="Oslo")
PUBLIC: dict[str, Any] = {"age": Number(0, 100), "city": CITY, "member": Boolean(), "y": Number(0, 200)}
FOUND: dict[str, Any] = {"age": Number(), "city": Category(reference="Oslo"), "member": Boolean(), "y": Number()}
LABELS: dict[str, Any] = {**PUBLIC, "y": Category(["few", "many", "some"])}
NAMES = ("age", "city=Bern", "city=Rome", "city=(none)", "member")


def made(n: int = 60_000) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    city, age, member = rng.choice(CITIES, n, p=[0.2, 0.5, 0.3]), rng.uniform(20, 80, n), rng.random(n) < 0.5
    effect = np.select([city == "Bern", city == "Rome"], [-20.0, 30.0], 0.0)
    y = 60 + effect + 0.5 * age + 10 * member + rng.normal(0, 5, n)
    return pl.DataFrame({"age": age, "city": city, "member": member, "y": y})


TABLE = made()
ROWS = pl.DataFrame({
    "age": [30.0, 60.0, 30.0, 50.0], "city": ["Oslo", "Bern", "Rome", "Lima"], "member": [False, True, False, True],
})  # fmt: skip


def rehearsed(columns: Any, seed: int = 0, **given: Any) -> Any:
    return LinearRegression(epsilon=2, schema=Schema(columns, target="y"), noise=Simulation(seed), **given).fit(TABLE)


def answers(linear: Any) -> list[float]:
    """By hand, for rows in the user's units."""
    value = dict(zip(linear.names, linear.values.tolist(), strict=True))
    return [
        linear.intercept + value["age"] * age + value["member"] * member
        + value.get(f"city={city}", value.get("city=(none)", 0.0) if city == "Lima" else 0.0)
        for age, city, member in ROWS.rows()
    ]  # fmt: skip


@pytest.mark.slow
@sampled(2)
@pytest.mark.parametrize("columns", [PUBLIC, FOUND], ids=["public", "found"])
def test_fits_of_one_table_agree_on_what_a_coefficient_means(columns: Any) -> None:
    models = [rehearsed(columns, seed) for seed in range(3)]
    assert {model.coef_names_ for model in models} == {NAMES}
    for model in models:
        assert model.coef_[[0, 1, 2, 4]] == pytest.approx([0.5, -20, 30, 10], abs=2)
        assert model.intercept_ == pytest.approx(60, abs=3)
    raw = np.array([model.coefficients(reference=False).values for model in models])
    assert raw.shape[1] in (5, 6)  # with one for rows in no level, where it is known
    apart = np.ptp(raw[:, 2]), np.ptp([model.coef_[1] for model in models])
    assert apart[0] > 3 * apart[1]  # the reference level alone means nothing


@sampled(2)
@pytest.mark.parametrize("columns", [PUBLIC, FOUND], ids=["public", "found"])
def test_coefficients_are_the_function_that_predicts(columns: Any) -> None:
    model = rehearsed(columns)
    assert answers(model.coefficients()) == pytest.approx(model.predict(ROWS).tolist(), abs=1e-6)
    assert answers(model.coefficients(reference=False)) == pytest.approx(model.predict(ROWS).tolist(), abs=1e-6)
    assert model.coefficients().values.tolist() == model.coef_.tolist()


def test_deviations_are_those_that_were_found_or_half_of_the_range() -> None:
    public, found = rehearsed(PUBLIC), rehearsed(FOUND)
    assert public.coefficients("standardised").values == pytest.approx(public.coef_ * [50, 1, 1, 1, 1] / 100)
    age, y = found.bounds_["age"], found.bounds_["y"]
    shown = found.coefficients("standardised")
    assert shown.values == pytest.approx(found.coef_ * np.array([age.scale, 1, 1, 1, 1]) / y.scale)
    centre = pl.DataFrame({"age": [age.centre], "city": ["Oslo"], "member": [False]})
    assert y.centre + y.scale * shown.intercept == pytest.approx(found.predict(centre)[0])


def test_a_reference_that_was_not_found_is_the_first_level() -> None:
    model = rehearsed({**FOUND, "city": Category(reference="Lima")})
    assert model.coef_names_ == ("age", "city=Oslo", "city=Rome", "city=(none)", "member")


@pytest.mark.slow
def test_labels_and_counts() -> None:
    table = TABLE.with_columns(pl.when(pl.col("y") > 110).then(pl.lit("many")).otherwise(pl.lit("few")).alias("y"))
    two = LogisticRegression(
        schema=Schema({**PUBLIC, "y": Category(["few", "many"])}, target="y"), noise=Simulation(0)
    ).fit(table)
    assert (two.coef_.shape, two.coef_names_) == ((1, 5), NAMES)
    assert two.coefficients().values.tolist() == two.coef_[0].tolist()
    assert two.coefficients("standardised").values == pytest.approx(two.coef_[0] * [50, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="leave out label"):
        two.coefficients(label="many")
    three = LogisticRegression(schema=Schema(LABELS, target="y"), noise=Simulation(0)).fit(table)
    assert three.coef_.shape == (3, 5)
    assert three.coefficients(label="many").intercept == three.intercept_[1]
    with pytest.raises(ValueError, match="label must be one of the classes: few, many, some"):
        three.coefficients()
    counts = PoissonRegression(schema=Schema(PUBLIC, target="y"), noise=Simulation(0)).fit(TABLE)
    assert counts.coef_names_ == NAMES
    assert np.log(counts.predict(ROWS[:1])) == pytest.approx(answers(counts.coefficients())[0])


def test_arrays_have_no_levels_and_no_deviations() -> None:
    X, y = TABLE.select("age").to_numpy() / 100, TABLE["y"].to_numpy()
    model = LinearRegression(x_norm=1, y_bound=200, noise=Simulation(0)).fit(X, y)
    assert model.coefficients().names == ("x0",)
    with pytest.raises(ValueError, match="leave out x_norm, or give a schema"):
        model.coefficients("standardised")
    with pytest.raises(ValueError, match='"original" or "standardised"'):
        model.coefficients("metric")


def test_files_of_former_versions_predict_the_same_and_show_contrasts() -> None:
    model = rehearsed(PUBLIC, method="sufficient")
    former = copy.deepcopy(model)
    for name, value in model._every_level().items():
        setattr(former, name, value)
    written = model_file.as_dict(former)
    assert written["released"]["coef_names"]["tuple"][2] == "city=Oslo"
    read = model_file.from_dict(written)
    assert (read.coef_names_, read.coef_.tolist()) == (NAMES, pytest.approx(model.coef_.tolist()))
    assert read.predict(ROWS).tolist() == model.predict(ROWS).tolist()
    written["released"]["intercept"] = model_file.as_dict(model)["released"]["intercept"]
    with pytest.raises(ValueError, match="the file was changed"):
        model_file.from_dict(written)


def test_noise_of_contrasts() -> None:
    model = rehearsed(PUBLIC, method="adassp")
    raw = model._every_level()["noise_scale_"]
    assert model.noise_scale_[1] == pytest.approx(np.hypot(raw[1], raw[2]))
    assert model.noise_scale_[3] == raw[2]
    assert list(model.plan().forecast.fits[0].noise) == list(NAMES)
