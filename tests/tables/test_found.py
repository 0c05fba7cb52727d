"""What was found about columns: checked when it is made, so that a file cannot bring nonsense."""

import math
import pickle
from dataclasses import replace
from typing import Any

import pytest

from snugdp.serial.codec import StoredOutcome, dumps, loads
from snugdp.tables.found import Flag, FoundBounds, FoundLevels, FoundNumber
from snugdp.tables.schema.schema import Boolean, Category, Date, Number, Schema

DECLARED = Schema(
    {"x": Number(), "city": Category(), "day": Date(parts=["month"]), "member": Boolean(), "y": Number(0, 1)},
    target="y",
    missing={"x": "indicator"},
)
COLUMNS: dict[str, Any] = {
    "x": FoundNumber(-1, 5, 2, 0.5, Flag.COARSE, 0.1),
    "city": FoundLevels(("Oslo", "Rome"), (0.25, 0.5), missing=0.2),
    "day": FoundNumber(18_000, 19_000, 18_500, 300),
    "y": FoundNumber(0, 1, 0.5, 0.25, Flag.PUBLIC),
}
BOUNDS = FoundBounds(DECLARED, COLUMNS, 1000.0, 2.0)


@pytest.mark.parametrize(
    "numbers", [(0, 1, 2, 1), (0, 1, 0.5, 0), (0, math.inf, 1, 1), (-1, 1, math.nan, 1), (0, 1, 0.5, -1)]
)
def test_numbers_are_checked(numbers: Any) -> None:
    with pytest.raises(ValueError, match="between finite bounds"):
        FoundNumber(*numbers)


def test_levels_are_checked() -> None:
    with pytest.raises(ValueError, match="every level"):
        FoundLevels(("a",), ())
    for shares, missing in [((1.5,), 0.0), ((-0.1,), 0.0), ((math.nan,), 0.0), ((0.5,), 2.0)]:
        with pytest.raises(ValueError, match="between 0 and 1"):
            FoundLevels(("a",), shares, missing=missing)


def test_some_levels() -> None:
    one = FoundLevels(("a", "b", "c"), (0.1, 0.2, 0.3), missing=0.4).at([True, False, True])
    assert one == FoundLevels(("a", "c"), (0.1, 0.3), missing=0.4)


@pytest.mark.parametrize("change", [{"rows": 0.0}, {"radius": 0.0}, {"radius": math.inf}, {"rows": math.nan}])
def test_rows_and_radius_are_above_zero(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        replace(BOUNDS, **change)


@pytest.mark.parametrize(("name", "other"), [("x", COLUMNS["city"]), ("city", COLUMNS["x"]), ("day", None)])
def test_every_column_is_spoken_of(name: str, other: Any) -> None:
    columns = {key: value for key, value in {**COLUMNS, name: other}.items() if value is not None}
    with pytest.raises(ValueError, match=f'the column "{name}"'):
        replace(BOUNDS, columns=columns)


def test_it_can_be_stored_compared_and_hashed() -> None:
    stored = dumps(StoredOutcome(False, BOUNDS))
    assert stored is not None
    assert loads(stored).value == BOUNDS
    again = pickle.loads(pickle.dumps(BOUNDS))
    assert again == BOUNDS
    assert hash(again) == hash(BOUNDS)
    assert BOUNDS["city"] == COLUMNS["city"]
    assert replace(BOUNDS, radius=3.0) != BOUNDS
    assert BOUNDS != "bounds"
