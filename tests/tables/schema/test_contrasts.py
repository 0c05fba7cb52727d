"""Contrasts and units are other words for the same linear function."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugdp.tables.found import FoundColumn, FoundLevels, FoundNumber
from snugdp.tables.schema.contrasts import deviations, identified, standardised
from snugdp.tables.schema.schema import Boolean, Category, Coefficients, Date, Number, Schema

SCHEMA = Schema(
    {
        "age": Number(0, 100),
        "city": Category(["Rome", "Oslo", "Bern"], reference="Oslo"),
        "plan": Category([1, 2]),
        "member": Boolean(),
        "seen": Date(0, 1, parts=["hour"]),
        "y": Number(0, 1),
    },
    target="y",
)
COLUMNS = {name: kind for name, kind in SCHEMA.columns.items() if name != "y"}
NAMES = SCHEMA.features[:-1]
sizes = st.floats(-100, 100).map(lambda x: round(x, 3))
ROWS = [
    {"age": age, f"city={city}": 1.0, f"plan={plan}": 1.0, "member": 1.0, "seen.hour.cos": 0.5}
    for age in (0.0, 30.0)
    for city in ("Rome", "Oslo", "Bern", "(none)")
    for plan in (1, 2, "(none)")
]


def answer(linear: Coefficients, row: dict[str, Any]) -> float:
    terms = (row.get(name, 0.0) * value for name, value in zip(linear.names, linear.values.tolist(), strict=True))
    return linear.intercept + float(sum(terms))


@given(st.lists(sizes, min_size=len(NAMES), max_size=len(NAMES)), sizes)
def test_contrasts_are_the_same_function(values: list[float], intercept: float) -> None:
    linear = Coefficients(NAMES, np.array(values), intercept)
    found = identified(linear, COLUMNS)
    assert found.names == (
        "age", "city=Rome", "city=Bern", "city=(none)", "plan=2", "plan=(none)", "member", "seen", "seen.hour.sin",
        "seen.hour.cos",
    )  # fmt: skip
    for row in ROWS:
        assert answer(found, row) == pytest.approx(answer(linear, row), abs=1e-9)


@given(st.lists(sizes, min_size=len(NAMES), max_size=len(NAMES)), sizes, sizes)
def test_what_cannot_be_told_apart_has_the_same_contrasts(values: list[float], intercept: float, shift: float) -> None:
    """Levels up, intercept down: only rows without a level notice."""
    moved = [v + shift if name.startswith("city=") else v for name, v in zip(NAMES, values, strict=True)]
    one = identified(Coefficients(NAMES, np.array(values), intercept), COLUMNS)
    other = identified(Coefficients(NAMES, np.array(moved), intercept - shift), COLUMNS)
    same = [name != "city=(none)" for name in one.names]
    assert other.values[same] == pytest.approx(one.values[same], abs=1e-9)
    assert other.intercept == pytest.approx(one.intercept, abs=1e-9)


def test_one_level_is_compared_with_rows_that_are_not_in_it() -> None:
    linear = Coefficients(("city=Rome",), np.array([2.0]), 3.0)
    assert identified(linear, {"city": Category(["Rome"])}) == linear


def test_noise_of_a_difference_is_that_of_both() -> None:
    columns = {"city": Category(["Rome", "Oslo", "Bern"], reference="Oslo")}
    found = deviations(["age", "city=Rome", "city=Oslo", "city=Bern"], np.array([1.0, 3.0, 4.0, 0.0]), columns)
    assert found.tolist() == [1.0, 5.0, 4.0, 4.0]


def test_entries_that_were_not_chosen_count_as_zero() -> None:
    chosen = Coefficients(("age", "city=Oslo"), np.array([1.0, 5.0]), 2.0)
    found = identified(chosen, COLUMNS)
    assert dict(zip(found.names, found.values, strict=True)) == {
        "age": 1, "city=Rome": -5, "city=Bern": -5, "city=(none)": -5,
    }  # fmt: skip
    assert found.intercept == 7
    other = identified(Coefficients(("city=Rome",), np.array([5.0]), 2.0), COLUMNS)
    assert dict(zip(other.names, other.values, strict=True)) == {"city=Rome": 5, "city=(none)": 0}


def test_deviations_as_units_are_the_same_function() -> None:
    found: dict[str, FoundColumn] = {
        "age": FoundNumber(0, 100, 40, 20),
        "seen": FoundNumber(0, 1, 0.5, 0.25),
        "y": FoundNumber(0, 1, 0.25, 0.125),
        "plan": FoundLevels((1,), (0.5,)),
    }
    linear = Coefficients(("age", "plan=2", "seen"), np.array([2.0, 3.0, 4.0]), 1.0)
    shown = standardised(linear, found, "y")
    row = {"age": 70.0, "plan=2": 1.0, "seen": 0.75}
    scaled = {"age": 1.5, "plan=2": 1.0, "seen": 1.0}
    assert answer(shown, scaled) * 0.125 + 0.25 == pytest.approx(answer(linear, row))
    assert standardised(linear, {}).values.tolist() == linear.values.tolist()


def test_a_difference_of_levels_is_the_same_for_every_reference() -> None:
    whole = Coefficients(("city=Rome", "city=Oslo"), np.array([1.5, 4.0]), 2.0)
    assert whole.contrast({"city=Oslo": 1, "city=Rome": -1}) == 2.5
    assert whole.contrast({"city=Oslo": 0.5, "intercept": 1}) == 4.0
    for wrong in ({}, {"city=Bern": 1.0}):
        with pytest.raises(ValueError, match="give weights of city=Rome, city=Oslo, intercept"):
            whole.contrast(wrong)
