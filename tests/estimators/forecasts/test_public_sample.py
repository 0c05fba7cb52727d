"""Forecasts from a public sample: what a rehearsal on it says, in the units of all forecasts."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import snugdp
from snugdp.estimators.forecasts.forecast import forecast
from snugdp.estimators.forecasts.public_sample import PublicSample
from snugdp.noise import Simulation
from snugdp.propose.forecast import ErrorOf

ROWS = 3000


def drawn(rows: int, seed: int = 0) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=rows), generator.exponential(size=rows)
    return pl.DataFrame({"a": a, "b": b, "y": 2 * a + b + generator.normal(size=rows)})


SCHEMA = snugdp.Schema({"a": snugdp.Number(-5, 5), "b": snugdp.Number(0, 20), "y": snugdp.Number(-20, 30)}, target="y")


def linear(**given: Any) -> snugdp.LinearRegression:
    return snugdp.LinearRegression(1, 1e-6, method="adassp", schema=SCHEMA, **given)


def seen(rows: pl.DataFrame) -> float:
    said = [linear(noise=Simulation(50 + seed)).fit(rows).predict(rows) for seed in range(12)]
    return float(np.sqrt(np.mean(np.var(said, axis=0, ddof=1))))


def test_a_sample_of_other_rows_tells_the_noise_within_a_factor_of_two() -> None:
    public, private = drawn(200, seed=1), drawn(ROWS, seed=2)
    expected = forecast(linear(), ROWS, sample=public, factors=(), more=()).asked
    assert seen(private) / 2 <= expected.error <= 2 * seen(private)
    plain = forecast(linear(), ROWS, factors=(), more=()).asked
    ratio = expected.error / plain.error
    assert expected.noise == {name: value * ratio for name, value in plain.noise.items()}


def test_all_of_the_outlook_is_for_rows_like_these() -> None:
    plain, sampled = (forecast(linear(), ROWS, sample=sample) for sample in (None, drawn(100)))
    ratio = sampled.asked.error / plain.asked.error
    pairs = zip(sum(plain.grid, ()), sum(sampled.grid, ()), strict=True)
    assert all(math.isclose(mine.error, ratio * other.error, rel_tol=1e-12) for other, mine in pairs)
    assert sampled.asked in sampled.by_epsilon


def test_few_rows_far_from_the_others_hardly_move_what_is_typical() -> None:
    usual = drawn(100)
    far = pl.concat([usual, pl.DataFrame({"a": [5.0, -5.0], "b": [20.0, 20.0], "y": [30.0, 10.0]})])
    model = snugdp.LinearRegression(1, 1e-6, schema=SCHEMA)
    plain, moved = (forecast(model, ROWS, sample=rows, factors=(), more=()).asked for rows in (usual, far))
    assert plain.typical is not None
    assert moved.typical is not None
    assert moved.typical / plain.typical < 1.5 < moved.error / plain.error
    assert plain.typical < plain.error


def test_of_many_coefficients_few_fits_tell_the_noise() -> None:
    public, found = snugdp.LinearRegression(1, 1e-6, x_norm=1, y_bound=1), snugdp.LinearRegression(1, 1e-6)
    samples = [PublicSample.of((np.ones((30, width)), np.ones(30))) for width in (1, 10, 11, 100)]
    assert [sample.fits(public) for sample in samples] == [6, 6, 4, 4]
    assert {sample.fits(found) for sample in samples} == {6}  # which bounds are found differs from fit to fit


def test_every_form_of_the_same_sample_says_the_same() -> None:
    table = drawn(60)
    X, y = table.drop("y"), table["y"]
    model = snugdp.LinearRegression(1, 1e-6, method="adassp", x_norm=6, y_bound=30)
    forms = [(X, y), (X.to_pandas(), y.to_pandas()), (X.to_numpy(), y.to_numpy()), (X.to_numpy().tolist(), y.to_list())]
    errors = {PublicSample.of(form).errors(model, 500, ErrorOf.PREDICTION) for form in forms}
    assert len(errors) == 1


def test_a_rehearsal_has_as_many_rows_as_the_fit() -> None:
    """Noise need not fall in proportion to the rows: ridges weigh less the more there are."""
    sample = PublicSample.of(drawn(50))
    few, more = (sample.errors(linear(), rows, ErrorOf.PREDICTION)[0] for rows in (500, 5_000))
    repeated = pl.concat([drawn(50)] * 100)
    assert PublicSample.of(repeated).errors(linear(), 5_000, ErrorOf.PREDICTION)[0] == pytest.approx(more)
    assert few > more


def test_where_rows_are_too_many_noise_falls_as_in_the_plan() -> None:
    sample = PublicSample.of(drawn(50))
    assert sample.most == 100_000 // 3
    rows = 4 * sample.most
    plain, sampled = (
        [forecast(linear(), each, sample=given, factors=(), more=()).asked.error for each in (sample.most, rows)]
        for given in (None, drawn(50))
    )
    assert sampled[0] / sampled[1] == pytest.approx(plain[0] / plain[1])


@pytest.mark.slow
def test_without_bounds_errors_are_in_deviations_of_the_target() -> None:
    table = drawn(300)
    model = snugdp.LinearRegression(4, 1e-6)
    plain, scaled = (
        np.array(PublicSample.of((table, "y")).errors(model, 2000, kind))
        for kind in (ErrorOf.PREDICTION, ErrorOf.STANDARDISED)
    )
    assert scaled == pytest.approx(plain / table["y"].to_numpy().std())


def test_advice_is_rehearsed_at_the_epsilon_that_it_names() -> None:
    sample = drawn(100)
    advice = snugdp.advise(linear(), rows=ROWS, error=0.5, sample=sample)
    assert advice.epsilon is not None
    model = snugdp.LinearRegression(advice.epsilon, 1e-6, method="adassp", schema=SCHEMA)
    seen_there = PublicSample.of(sample).errors(model, ROWS, ErrorOf.PREDICTION)
    assert (advice.error, advice.typical) == pytest.approx(seen_there)
    assert advice.error <= 0.5
    assert [fit.error for fit in advice.plan.forecast.fits] == [advice.error]
    assert "public sample" in str(advice.plan)
    assert "public sample" not in str(snugdp.advise(linear(), rows=ROWS, error=0.5))


@pytest.mark.slow
def test_fits_that_are_refused_have_no_error() -> None:
    model = snugdp.LinearRegression(0.01, 1e-9)  # bounds that 30 rows cannot show
    assert PublicSample.of((drawn(30), "y")).errors(model, 30, ErrorOf.STANDARDISED) == (math.inf, math.inf)


def test_what_all_classes_share_is_no_noise() -> None:
    """Only differences of scores say something: the noise that is in all of them moves no prediction."""
    table = drawn(60).with_columns(y=pl.Series([*"abc"] * 20))
    schema = snugdp.Schema({**SCHEMA.columns, "y": snugdp.Category((*"abc",))}, target="y")
    model, sample = snugdp.LogisticRegression(1, 1e-6, schema=schema), PublicSample.of(table)
    answer = sample._answer(model, table, None, 0, ErrorOf.LINEAR)
    assert answer is not None
    assert answer.shape == (60, 3)
    assert answer.sum(axis=1) == pytest.approx(0, abs=1e-9)
    assert answer.std() > 0


def test_what_is_no_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="20 rows"):
        forecast(linear(), 100, sample=drawn(19))
    for targets in (np.ones(29), np.ones(31)):
        with pytest.raises(ValueError, match="one each"):
            forecast(linear(), 100, sample=(np.ones((30, 2)), targets))
    with pytest.raises(TypeError, match="pair"):
        forecast(linear(), 100, sample="rows.csv")
    with pytest.raises(TypeError, match="leave out sample"):
        forecast(snugdp.PCA(1, 1, 1e-6, x_norm=1), 100, n_features=2, sample=np.ones((50, 2)))
    persons = snugdp.Schema(SCHEMA.columns, target="y", person="who")
    with pytest.raises(ValueError, match="without persons"):
        PublicSample.of(drawn(30)).errors(snugdp.LinearRegression(1, 1e-6, schema=persons), 10, ErrorOf.PREDICTION)
