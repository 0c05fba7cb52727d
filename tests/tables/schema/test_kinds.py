"""Open columns, dates and reference levels: what is declared, what is left to be found, and how both are written."""

import datetime
import json
import pickle
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from snugdp.serial.codec import decode, encode
from snugdp.tables.layouts.boxes import EntrySchema
from snugdp.tables.layouts.points import centred
from snugdp.tables.passes.vectors.moments import GramPass
from snugdp.tables.schema.kinds import PARTS
from snugdp.tables.schema.schema import Boolean, Category, Date, Number, Schema

OPEN = Schema(
    {
        "age": Number(),
        "weight": Number(lower=0),
        "height": Number(upper="5/2"),
        "city": Category(),
        "shop": Category(reference="main"),
        "member": Boolean(),
        "seen": Date(parts=["hour", "weekday"]),
        "born": Date("1900-01-01"),
        "plan": Category(["basic", "full"], reference="full"),
        "income": Number(),
    },
    target="income",
)


def test_an_open_schema_knows_what_is_to_be_found() -> None:
    assert OPEN.open_columns == ("age", "weight", "height", "city", "shop", "seen", "born", "income")
    assert not OPEN.complete
    whole = Schema({"age": Number(0, 120), "city": Category(["Rome"]), "member": Boolean(), "seen": Date(0, 1)})
    assert whole.complete
    assert whole.open_columns == ()


def test_an_open_schema_is_a_value_and_survives_being_written() -> None:
    assert Schema.from_toml(OPEN.to_toml()) == OPEN
    assert Schema.from_json(json.loads(json.dumps(OPEN.to_json()))) == OPEN
    assert OPEN.to_json()["columns"]["age"] == {"type": "number"}
    assert OPEN.to_json()["columns"]["born"] == {"type": "date", "lower": "1900-01-01"}
    for again in (pickle.loads(pickle.dumps(OPEN)), decode(encode(OPEN))):
        assert again == OPEN
        assert hash(again) == hash(OPEN)
    assert Schema({**OPEN.columns, "age": Number(0, 1)}, target="income") != OPEN


def test_a_category_without_a_reference_is_written_as_before_there_were_any() -> None:
    assert encode(Category(["a"])) == {"record": ["category/1", {"values": {"tuple": ["a"]}}]}
    assert decode({"record": ["category/1", {"values": {"tuple": ["a", "b"]}}]}) == Category(["a", "b"])
    kept = encode(Category(["a", "b"], reference="b"))
    assert kept["record"][1]["reference"] == "b"
    assert decode(kept) == Category(["a", "b"], reference="b")


def table() -> nw.DataFrame[Any]:
    rows = {name: [1.0] for name in OPEN.columns}
    wrapped: nw.DataFrame[Any] = nw.from_native(pl.DataFrame(rows), eager_only=True)
    return wrapped


@pytest.mark.parametrize(
    "needs",
    [
        lambda: OPEN.features,
        lambda: OPEN.target_units,
        lambda: OPEN.coefficients([1.0]),
        lambda: OPEN.blocks(table()),
        lambda: OPEN.vectors(table()),
        lambda: GramPass(OPEN).row_map,
        lambda: Schema({"age": Number()}).features,
    ],
)
def test_what_needs_bounds_says_so_before_any_row_is_read(needs: Any) -> None:
    with pytest.raises(ValueError, match=r'does not say the bounds or values of "age".*declare them.*privately'):
        needs()


def test_names_and_types_of_an_open_schema_can_be_checked() -> None:
    types: dict[str, Any] = {
        "age": nw.Int64(), "weight": nw.Float64(), "height": nw.Decimal(), "city": nw.String(), "shop": nw.Enum(["x"]),
        "member": nw.Boolean(), "seen": nw.Datetime(), "born": nw.Date(), "plan": nw.String(), "income": nw.Int8(),
    }  # fmt: skip
    OPEN.check(types)
    for name, dtype in {"seen": nw.Time(), "born": nw.Int64(), "age": nw.Date()}.items():
        with pytest.raises(TypeError, match=f'column "{name}" is of type'):
            OPEN.check({**types, name: dtype})


def test_the_reference_is_the_first_value_unless_declared() -> None:
    assert Category(["a", "b"]).baseline == "a"
    assert Category([1, 2], reference=2.0).baseline == 2
    with pytest.raises(ValueError, match="one of the values"):
        Category(["a", "b"], reference="c")
    with pytest.raises(TypeError, match="one of the values"):
        Category(reference=("a",))
    with pytest.raises(ValueError, match="not declared"):
        Category().levels  # noqa: B018


@pytest.mark.parametrize(
    "lower",
    ["2020-01-01", datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), np.datetime64("2020"), "20200101",
     datetime.datetime(2020, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))],
    ids=str,
)  # fmt: skip
def test_bounds_of_dates_are_dates_or_days(lower: Any) -> None:
    assert Date(lower) == Date("2020-01-01")
    assert Date(lower).end("lower") == 18262 == Date(18262).end("lower")


def test_times_as_bounds_are_exact() -> None:
    assert Date("1970-01-01T12:00:00", "1970-01-02").middle == Fraction(3, 4)
    assert Date("1/3", 1.5).end("lower") == Fraction(1, 3)


@pytest.mark.parametrize("text", ["lower = 2020-01-01", 'lower = "2020-01-01"', "lower = 2020-01-01T00:00:00Z"])
def test_dates_of_toml_are_bounds_too(text: str) -> None:
    read = Schema.from_toml(f'[columns.seen]\ntype = "date"\n{text}\nparts = ["month"]\n')
    assert read.columns["seen"] == Date("2020-01-01", parts=["month"])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Date("2020-02-01", "2020-01-01"), ValueError, "less than"),
        (lambda: Date("yesterday"), ValueError, "must be a date, such as"),
        (lambda: Date(datetime.time(12)), ValueError, "must be a date, such as"),  # type: ignore[arg-type]
        (lambda: Date(True), ValueError, "must be a date, such as"),
        (lambda: Date(parts="month"), TypeError, "must be a list"),
        (lambda: Date(parts=["century"]), ValueError, "some of month"),
        (lambda: Date(parts=["month", "month"]), ValueError, "once"),
        (lambda: Schema({"x": Boolean(), "seen": Date()}, target="seen"), TypeError, "not a Date"),
        (lambda: Schema({"d": Date(parts=["hour"]), "d.hour.sin": Boolean()}), ValueError, "rename a column"),
    ],
)
def test_bad_dates(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


SEEN = Schema({"seen": Date("2020-01-01", "2030-01-01", parts=list(PARTS)), "y": Number(0, 1)}, target="y")


def test_a_date_is_its_days_and_the_parts_that_come_round() -> None:
    assert SEEN.features[:3] == ("seen", "seen.month.sin", "seen.month.cos")
    assert SEEN.parts == 5
    rows = ["2024-04-01T06:00:00", "2020-01-01", None, "?", "2031-07-01T18:59:59.999999"]
    native = pl.DataFrame({"seen": rows, "y": [0.5] * 5})
    vectors, _ = SEEN.vectors(nw.from_native(native, eager_only=True))
    images = vectors / np.sqrt(1 / 5)
    assert images[0, 1:7] == pytest.approx([1, 0, 0, 1, 1, 0], abs=1e-15)  # April, a Monday, six o'clock
    assert images[1, :3] == pytest.approx([-1, 0, 1], abs=1e-15)
    assert images[1, 7:9] == pytest.approx([0, 1], abs=1e-15)
    assert images[2, :9].tolist() == images[3, :9].tolist() == [0] * 9
    assert images[4, [0, 5, 6]] == pytest.approx([1, -1, 0], abs=1e-15)
    for row in vectors:
        assert sum(Fraction(float(entry)) ** 2 for entry in row[:-1]) <= 1


def test_coefficients_of_dates_are_per_day_and_per_turn() -> None:
    native = pl.DataFrame({"seen": ["2024-04-01T06:00:00"], "y": [0.5]})
    vectors, _ = SEEN.vectors(nw.from_native(native, eager_only=True))
    theta = np.arange(1.0, len(SEEN.features) + 1)
    linear = SEEN.coefficients(theta)
    waves = [
        np.sin(1.5 * np.pi * 0 + np.pi / 2),
        0,
        0,
        1,
        1,
        0,
        np.sin(2 * np.pi * 91 / 366),
        np.cos(2 * np.pi * 91 / 366),
    ]
    days = (datetime.datetime(2024, 4, 1, 6) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    assert linear.intercept + linear.values @ [days, *waves] == pytest.approx(
        0.5 + 0.5 * (theta @ vectors[0]), abs=1e-9
    )


def test_a_missing_date_is_the_centre() -> None:
    schema = Schema({"seen": Date(0, 2, parts=["hour"]), "x": Number(-1, 1)}, intercept=False)
    table: Any = nw.from_native(pl.DataFrame({"seen": ["1970-01-02", None], "x": [0.0, 0.0]}), eager_only=True)
    shift = (0.25, 0.5, 0.125, 0.0)
    plain = schema.vectors(table)[0]
    moved = np.vstack([block.copy() for block, _ in centred(schema, shift).blocks(table)])
    assert moved[0].tolist() == (plain[0] - shift).tolist()
    assert moved[1].tolist() == [0.0] * 4


def test_entries_of_dates_are_scaled_to_one() -> None:
    table: Any = nw.from_native(pl.DataFrame({"seen": ["2030-01-01"], "y": [1.0]}), eager_only=True)
    entries = EntrySchema(SEEN)
    (rows, _), *_ = entries.blocks(table)
    assert rows[0, :3] == pytest.approx([1, 0, 1], abs=1e-12)
    theta = np.arange(1.0, len(entries.features) + 1)
    assert entries.coefficients(theta).names == SEEN.features[:-1]
