"""What was found, as people read it."""

import pytest

from snugdp import Boolean, Category, Date, Number, Schema
from snugdp.tables.found import Flag, FoundBounds, FoundColumn, FoundLevels, FoundNumber
from snugdp.tables.found_lines import lines, not_found

SCHEMA = Schema(
    {
        "y": Number(), "age": Number(), "seen": Date(), "city": Category(), "rare": Category(), "x": Number(0, 1),
        "paid": Boolean(), "size": Category(["S", "M"]), "one": Number(), "far": Number(), "day": Date("2020-01-01"),
    },
    target="y",
)  # fmt: skip
COLUMNS: dict[str, FoundColumn] = {
    "y": FoundNumber(-1e6, 1e6, 12345.678, 1e5, missing=0.104),
    "age": FoundNumber(0.125, 200, 41.23456, 12.5, Flag.COARSE, missing=0.0, hull=(18.5, 90)),
    "seen": FoundNumber(0, 18262.5, 11000, 365.25),
    "city": FoundLevels(("<b>", "a\nb", *map(str, range(8))), (0.5, 0.04, *[0.01] * 8), missing=0.02),
    "rare": FoundLevels((), (), Flag.NOT_FOUND),
    "x": FoundNumber(0, 1, 0.5, 0.25, Flag.PUBLIC),
    "size": FoundLevels(("S", "M"), (0.5, 0.5), Flag.PUBLIC),
    "one": FoundNumber(2, 4, 3, 1, Flag.CONSTANT),
    "far": FoundNumber(-1, 1, 0, 1, Flag.NOT_FOUND, missing=1.0),
    "day": FoundNumber(-1e9, 1e9, 0, 1e7),
}
FOUND = FoundBounds(SCHEMA, COLUMNS, 4321.4, 2)
BY_NAME = {line.column: line for line in lines(FOUND)}


def test_the_target_comes_last() -> None:
    assert list(BY_NAME) == [*[name for name in SCHEMA.columns if name != "y"], "y"]
    assert BY_NAME["y"].holds == "numbers, the target"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("y", ("-1,000,000 to 1,000,000", "-1,000,000 to 1,000,000", "12,346", "100,000", "10 %", "found")),
        ("age", ("18.5 to 90", "0.125 to 200", "41.23", "12.5", "0 %", "found to a factor of 2")),
        ("seen", ("1970-01-01 to 2020-01-01", "1970-01-01 to 2020-01-01", "2000-02-13", "365.2 days", "", "found")),
        ("rare", ("", "", "", "", "", "not found: left out")),
        ("x", ("0 to 1", "0 to 1", "", "", "", "public")),
        ("paid", ("no or yes", "", "", "", "", "public")),
        ("size", ("S, M", "", "", "", "", "public")),
        ("one", ("2 to 4", "2 to 4", "3", "1", "", "one value")),
        ("far", ("", "", "", "", "100 %", "not found: left out")),
    ],
)
def test_a_column_in_words(name: str, said: tuple[str, ...]) -> None:
    assert BY_NAME[name][2:] == said


@pytest.mark.parametrize(("hull", "told"), [((-1.0, 2.0**60), False), ((-(2.0**61), 0.0), False), ((0.0, 1e18), True)])
def test_numbers_beyond_the_grid_are_not_called_found(hull: tuple[float, float], told: bool) -> None:
    column = FoundNumber(-(2.0**62), 2.0**62, 0, 1.0, Flag.COARSE, 0.0, hull)
    (line,) = lines(FoundBounds(Schema({"x": Number()}), {"x": column}, 1000, 2))
    assert line.flag == "found to a factor of 2" if told else "use larger units" in line.flag


def test_levels_with_their_shares_and_how_many_more() -> None:
    assert BY_NAME["city"].lies.startswith("<b> 50 %, a\ufffdb 4 %, 0 1 %")
    assert BY_NAME["city"].lies.endswith("5 1 % and 2 more")
    assert BY_NAME["day"].lies == "-1,000,000,000 days to 1,000,000,000 days"


def test_a_table_for_terminals_and_one_for_notebooks() -> None:
    text = repr(FOUND).splitlines()
    assert text[0] == "Bounds of about 4,321 rows"
    assert len(text) == 2 + len(SCHEMA.columns)
    assert "<td>&lt;b&gt; 50 %" in FOUND._repr_html_()


def test_what_was_not_found_is_named() -> None:
    assert not_found(FOUND) == ("rare", "far")


def test_a_reference_that_is_no_level_and_levels_of_several_types() -> None:
    assert FoundLevels((1, "a"), (0.5, 0.5)).kind() == Category(["1", "a"])
    assert FoundLevels((1, 2), (0.5, 0.5)).kind("2") == Category([1, 2], reference=2)
    assert FoundLevels((1, 2), (0.5, 0.5)).kind("b") == Category([1, 2])
    assert FoundLevels((), ()).kind() is None
