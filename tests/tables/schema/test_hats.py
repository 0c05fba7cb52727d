"""Splines: the images of knots and of what lies between them, how long they are, and what is shown of a fit."""

from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from snugdp import LinearRegression, LogisticRegression, Number, Schema, Simulation, Spline
from snugdp.estimators.coefficients import deviations, shown
from snugdp.tables.schema.hats import curve_images, knot_images, smooth_factor
from snugdp.tables.schema.scaling import Hats, part_of_norm, scale_for
from snugdp.tables.schema.toml import parts_of

ODD: list[Any] = [
    None,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e300,
    -0.0,
    "?",
    [],
    1j,
    2**53 + 1,
    True,
    np.float32(0.3),
]


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 64])
def test_the_factor_is_that_of_the_smooth_ridge(cells: int) -> None:
    diagonal, beside = smooth_factor(cells)
    R = np.diag(diagonal) + np.diag(beside, 1)
    D = np.diff(np.eye(cells + 1), axis=0)
    np.testing.assert_allclose(R.T @ R, np.eye(cells + 1) + D.T @ D, atol=1e-14)
    images = knot_images(cells)
    np.testing.assert_allclose(images @ R / images[0, 0], np.eye(cells + 1) * R[0, 0], atol=1e-12)
    assert np.isclose(np.linalg.norm(images, axis=1).max(), 1, rtol=1e-12)


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 64])
def test_curves_are_half_straight_lines(cells: int) -> None:
    """The products of the images of knots are those of a line and of smooth curves without most of their mean."""
    size, D = cells + 1, np.diff(np.eye(cells + 1), axis=0)
    smooth = np.linalg.inv(np.eye(size) + 4 * D.T @ D) - 15 / 16 / size
    line = np.linspace(-1, 1, size)
    want = np.outer(line, line) + smooth / smooth.diagonal().max()
    images = curve_images(cells)
    np.testing.assert_allclose(images @ images.T, want / want.diagonal().max(), atol=1e-11)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_no_row_is_longer_than_its_share(parts: int) -> None:
    """Exactly: the squares of the floats are added as fractions."""
    limit = part_of_norm(parts)
    for cells in (1, 3, 16, 64):
        scale = scale_for(Spline(-3, 11, cells=cells), parts)
        assert isinstance(scale, Hats)
        places = np.linspace(-3, 11, 4 * cells + 1)
        cell = np.concatenate([places, np.nextafter(places, 99), np.nextafter(places, -99), [1e300, -np.inf, np.nan]])
        out = np.empty((scale.width, len(cell)))
        scale.write(cell, out)
        longest = max(sum(Fraction(entry) ** 2 for entry in row) for row in out.T.tolist())
        assert (1 - Fraction(1, 10**9)) * Fraction(limit) ** 2 < longest <= Fraction(limit) ** 2
        assert not out[:, -1].any()
        assert (out[:, -2] == out[:, 0]).all()


def test_one_odd_cell_changes_no_other_image() -> None:
    schema = Schema({"age": Spline(0, 1, cells=4), "y": Number(0, 1)}, target="y")
    plain = [0.1, 0.2, 0.6, 0.8]
    whole = schema.vectors(_frame(pl.DataFrame({"age": plain, "y": plain})))[0]
    for odd in ODD:
        cells = [*plain, odd]
        tables = [pd.DataFrame({"age": pd.Series(cells, dtype=object), "y": [*plain, 0.5]})]
        if odd is None or isinstance(odd, float):
            tables += [pl.DataFrame({"age": cells, "y": [*plain, 0.5]}), pa.table({"age": cells, "y": [*plain, 0.5]})]
        images = [schema.vectors(_frame(table))[0] for table in tables]
        for image in images:
            assert (image[:4] == whole).all(), repr(odd)
            assert (image == images[0]).all(), repr(odd)


def test_what_is_shown_is_the_curve() -> None:
    """The linear function of images is that of the hats in the user's units, missing numbers included."""
    schema = Schema({"age": Spline(0, 100, cells=5), "b": Number(-2, 2), "y": Number(0, 50)}, target="y")
    theta = np.random.default_rng(3).normal(size=len(schema.features))
    linear = schema.coefficients(theta)
    assert linear.names[:6] == tuple(f"age at {knot}" for knot in (0, 20, 40, 60, 80, 100))
    ages, b = np.array([-5.0, 7.0, 20.0, 99.0, 400.0, np.nan]), np.linspace(-1, 1, 6)
    X = schema.for_prediction.vectors(_frame(pd.DataFrame({"age": ages, "b": b})))[0]
    middle, half = schema.target_units
    curve = np.where(np.isnan(ages), 0.0, np.interp(ages, Spline(0, 100, cells=5).knots, linear.values[:6]))
    np.testing.assert_allclose(middle + half * X @ theta, linear.intercept + curve + linear.values[6] * b, rtol=1e-12)


def test_deviations_are_those_of_the_values_at_the_knots() -> None:
    schema = Schema({"age": Spline(0, 1, cells=3), "y": Number(0, 2)}, target="y")
    start = schema.coefficients(np.zeros(5)).values
    moves = np.array([schema.coefficients(one).values - start for one in np.eye(5)])
    theta = np.random.default_rng(1).normal(size=5)
    np.testing.assert_allclose(schema.coefficients(theta).values, start + theta @ moves, rtol=1e-12)
    exact = 0.5 * np.linalg.norm(moves, axis=0)
    np.testing.assert_allclose(deviations(schema, 0.5, reference=False), exact, rtol=1e-12)


def test_knots_are_compared_with_the_first() -> None:
    schema = Schema({"age": Spline(0, 10, cells=2), "y": Number(-1, 1)}, target="y")
    theta = np.array([0.3, -0.2, 0.5, 0.1])
    raw, relative = schema.coefficients(theta), shown(schema, theta)
    assert relative.names == ("age at 5", "age at 10", "age=(none)")
    np.testing.assert_allclose(relative.values, [*(raw.values[1:] - raw.values[0]), -raw.values[0]], rtol=1e-12)
    assert np.isclose(relative.intercept, raw.intercept + raw.values[0])


def test_curves_are_found_where_lines_see_nothing() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, 20_000)
    table = pd.DataFrame({"x": x, "y": np.sin(x) + rng.normal(scale=0.1, size=len(x)), "up": np.sin(x) > 0})

    def errors(kind: Number) -> float:
        schema = Schema({"x": kind, "y": Number(-2, 2)}, target="y")
        model = LinearRegression(1, 1e-6, schema=schema, noise=Simulation(1)).fit(table)
        return float(np.abs(model.predict(table) - np.sin(x)).mean())

    assert errors(Spline(0, 10)) < 0.05
    assert errors(Number(0, 10)) > 0.4
    from snugdp import Boolean

    labels = Schema({"x": Spline(0, 10), "up": Boolean()}, target="up")
    model = LogisticRegression(1, 1e-6, schema=labels, noise=Simulation(1)).fit(table)
    assert (model.predict(table) == table["up"]).mean() > 0.9


def test_a_schema_with_splines_is_written_and_read() -> None:
    schema = Schema({"age": Spline(0, 120, cells=8), "y": Number(0, 1)}, target="y", missing={"age": "indicator"})
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema(**parts_of(schema.to_json())) == schema
    assert schema.features[-2:] == ("age is missing", "intercept")
    assert Schema({"age": Spline(0, 120), "y": Number(0, 1)}, target="y") != schema


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match="both bounds"):
        Spline(lower=0)
    for cells in (0, 65, 1.5, True):
        with pytest.raises(ValueError, match="from 1 to 64"):
            Spline(0, 1, cells=cells)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a Spline"):
        Schema({"a": Number(0, 1), "y": Spline(0, 1)}, target="y")
    half_open = Schema({"a": Spline(0, 1), "b": Number(), "y": Number(0, 1)}, target="y")
    for model in (LinearRegression(1, 1e-6, schema=half_open), LogisticRegression(1, 1e-6, schema=half_open)):
        with pytest.raises((ValueError, TypeError), match=r"splines need public bounds|target"):
            model.plan()


def _frame(table: Any) -> nw.DataFrame[Any]:
    return nw.from_native(table, eager_only=True)


def test_a_missing_number_has_one_entry_that_says_all() -> None:
    schema = Schema({"age": Spline(0, 10, cells=2), "y": Number(-1, 1)}, target="y", missing="indicator")
    theta = np.array([0.3, -0.2, 0.5, 0.7, 0.1])
    raw, relative = schema.coefficients(theta), shown(schema, theta)
    assert relative.names == ("age at 5", "age at 10", "age is missing")
    half = schema.target_units[1]
    gap = schema.for_prediction.vectors(_frame(pd.DataFrame({"age": [np.nan]})))[0] @ theta
    np.testing.assert_allclose(relative.intercept + relative.values[2], half * gap[0], rtol=1e-12)
    np.testing.assert_allclose(relative.values[2], raw.values[3] - raw.values[0], rtol=1e-12)
    assert len(deviations(schema, 0.5)) == 3
