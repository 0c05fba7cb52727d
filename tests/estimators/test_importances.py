"""How far a column moves the answer: ranges between bounds that are public or were found."""

import datetime as dt
from typing import Any

import numpy as np
import pytest

from snugdp import Boolean, Category, Date, Number, Schema, Spline
from snugdp.estimators.coefficients import shown
from snugdp.estimators.importances import importances_of
from snugdp.tables.found import Flag, FoundBounds, FoundLevels, FoundNumber
from snugdp.tables.layouts.standardised import StandardisedLayout


def test_between_public_bounds_it_is_what_predictions_reach() -> None:
    columns: dict[str, Any] = {
        "age": Number(-5, 15),
        "hour": Spline(0, 24, cells=4),
        "city": Category(["Oslo", "Rome", "Lima"]),
        "only": Category(["yes"]),
        "member": Boolean(),
        "day": Date(dt.date(2020, 1, 1), dt.date(2021, 1, 1), parts=["month"]),
        "y": Number(0, 100),
    }
    schema = Schema(columns, target="y", missing="indicator")
    theta = np.random.default_rng(1).normal(size=len(schema.features))
    every = shown(schema, theta, reference=False)
    found, given = importances_of(schema, every), dict(zip(every.names, every.values, strict=True))
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found["age"] == pytest.approx(20 * abs(given["age"]))
    assert found["hour"] == pytest.approx(
        np.ptp([value for name, value in given.items() if name.startswith("hour at")])
    )
    assert found["city"] == pytest.approx(np.ptp([given[f"city={city}"] for city in columns["city"].values]))
    assert found["only"] == pytest.approx(abs(given["only=yes"]))
    assert found["member"] == pytest.approx(abs(given["member"]))
    turns = 2 * np.hypot(given["day.month.sin"], given["day.month.cos"])
    assert found["day"] == pytest.approx(366 * abs(given["day"]) + turns)


def test_between_found_bounds_it_is_where_rows_were_seen() -> None:
    declared = Schema(
        {"wide": Number(), "flat": Number(), "none": Number(), "city": Category(), "y": Number()}, target="y"
    )
    found: dict[str, FoundNumber | FoundLevels] = {
        "wide": FoundNumber(-1000, 1000, 1.0, 2.0, hull=(-2.0, 9.0)),
        "flat": FoundNumber(-9, 9, 4.0, 0.5, flag=Flag.CONSTANT, hull=(4.0, 4.0)),
        "none": FoundNumber(-1, 1, 0.0, 1.0, flag=Flag.NOT_FOUND),
        "city": FoundLevels(("a", "b"), (0.5, 0.5)),
        "y": FoundNumber(-1, 1, 0.0, 1.0),
    }
    layout = StandardisedLayout(FoundBounds(declared, found, 100, 2))
    every = shown(layout, np.ones(len(layout.features)), reference=False)
    ranges, slope = importances_of(layout, every), dict(zip(every.names, every.values, strict=True))["wide"]
    assert ranges["wide"] == pytest.approx((7 - -2) * slope)  # three scales from the centre, at most
    assert ranges["flat"] == 0
    assert "none" not in ranges
    assert ranges["city"] == 0
