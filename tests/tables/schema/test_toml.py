"""Schemas as TOML, templates from names and types alone, and the commands."""

import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from snugdp.cli.commands.query.columns import bounds
from snugdp.cli.commands.schema import app
from snugdp.tables.cells.cell import label
from snugdp.tables.schema.kinds import Undeclared
from snugdp.tables.schema.schema import Boolean, Category, Date, Number, Schema
from snugdp.tables.schema.toml import template

TEXT = """
target = "income"
intercept = false
norm = 0.5
[columns.age]
type = "number"
lower = 0
upper = 120.5
[columns."home town"]
type = "category"
values = ["Rome", "Oslo"]
[columns.member]
type = "boolean"
[columns.income]
type = "number"
lower = "-1/3"
upper = 1e6
"""
SCHEMA = Schema(
    {
        "age": Number(0, 120.5),
        "home town": Category(["Rome", "Oslo"]),
        "member": Boolean(),
        "income": Number("-1/3", 1e6),
    },
    target="income",
    intercept=False,
    norm=0.5,
)


def test_a_schema_is_read_from_text_and_files(tmp_path: Path) -> None:
    assert Schema.from_toml(TEXT) == SCHEMA
    path = tmp_path / "schema.toml"
    path.write_text(TEXT)
    assert Schema.from_toml(path) == Schema.from_toml(str(path)) == SCHEMA
    assert Schema.from_toml(SCHEMA.to_toml()) == SCHEMA


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9), st.fractions(-1000, 1000), st.decimals(-1000, 1000, places=3)
)


listed = names.filter(lambda name: label(name) is not None)


def values(column: Any) -> Any:
    if isinstance(column, Number):
        return Fraction(column.middle), Fraction(column.half)
    return column


@pytest.mark.slow
@given(st.dictionaries(names.filter(lambda name: "=" not in name), st.tuples(numbers, numbers), min_size=1), listed)
def test_what_is_written_is_read(bounds: dict[str, tuple[Any, Any]], value: str) -> None:
    columns: dict[str, Any] = {
        name: Number(low, Decimal(str(Fraction(low).limit_denominator(1).numerator)) + 10**7)
        for name, (low, _) in bounds.items()
        if name != "intercept"
    }
    columns["="] = Category([value, value + "!"])
    schema = Schema(columns)
    read = Schema.from_toml(schema.to_toml())
    assert list(read.columns) == list(schema.columns)
    assert [values(c) for c in read.columns.values()] == [values(c) for c in schema.columns.values()]


@pytest.mark.parametrize("labels", [[True, False], [1, 2], [0.5, 1e300], ['"quoted" \\ \n\t\x7f\x00', "é"]])
def test_every_kind_of_label_survives(labels: list[Any]) -> None:
    assert Schema.from_toml(Schema({"c": Category(labels)}).to_toml()).columns["c"] == Category(labels)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lower = 0\n", "lower =\n", "columns.age: the lower bound is missing. Delete the line to have it found"),
        ("upper = 1e6", "upper =  # soon", "columns.income: the upper bound is missing"),
        ('type = "boolean"', "type =", "columns.member.type is missing"),
        ("lower = 0\n", "lower = 500\n", "columns.age: the lower bound must be less"),
        ("lower = 0\n", "lower = nan\n", "columns.age: the lower bound must be a finite"),
        ("lower = 0\n", "lower = true\n", "columns.age: the lower bound must be a number"),
        ("lower = 0\n", "lower = [1]\n", "columns.age: the lower bound must be a finite"),
        ("lower = 0\n", "lower = 1979-05-27\n", "columns.age: the lower bound must be a finite"),
        ("lower = 0\n", "lower = 0\nmedian = 3\n", 'columns.age: unknown key "median"'),
        ('values = ["Rome", "Oslo"]', "values = []", 'columns."home town": values is empty'),
        ('values = ["Rome", "Oslo"]', 'values = "Rome"', 'columns."home town": values must be a list'),
        ('values = ["Rome", "Oslo"]', 'values = ["a", 1]', 'columns."home town": values must be all text'),
        ('type = "boolean"', 'type = "yes/no"', "columns.member.type must be"),
        ('type = "boolean"', "", "columns.member.type must be"),
        ('type = "boolean"', 'type = "boolean"\nlower = 1', 'columns.member: unknown key "lower"'),
        ("norm = 0.5", "nrom = 0.5", 'unknown key "nrom"'),
        ("norm = 0.5", "norm = 7", "norm must be"),
        ("norm = 0.5", "columns = 3", "not valid TOML"),
        ('target = "income"', "target = 3", "target must be the name"),
        ('target = "income"', 'target = "salary"', 'the target "salary" is not one'),
        ("intercept = false", 'intercept = "no"', "intercept must be"),
        ("[columns.member]", "[columns.age]", "not valid TOML"),
        ("[columns.member]", "[columns", "not valid TOML"),
    ],
)
def test_errors_name_the_file_and_the_key(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        Schema.from_toml(path)
    assert "mine.toml" in str(caught.value)


def test_a_file_that_is_no_schema(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read the schema .*No such file"):
        Schema.from_toml(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="UTF-8"):
        Schema.from_toml(tmp_path / "binary.toml")
    for text in ("norm = 1\n", "columns = 3\n", "[columns]\n"):
        with pytest.raises(ValueError, match="has no columns"):
            Schema.from_toml(text)
    with pytest.raises(TypeError, match="must be a section"):
        Schema.from_toml("columns = {age = 3}\n")


def test_a_template_is_a_schema_that_says_what_is_left_out() -> None:
    columns: dict[str, Any] = {
        "age": Number(), "home town": Category(), "member": Boolean(), "born": Date(), "any": Undeclared(),
    }  # fmt: skip
    text = template(columns, "age", {'o"dd\n': "its name says so"})
    schema = Schema.from_toml(text)
    assert schema.columns == columns
    assert schema.target == "age"
    assert Schema.from_toml(template(columns, None, {})).target is None
    assert '# "o\\"dd\\n": its name says so' in text
    filled = re.sub(r"(?m)^# (\w+ = )", r"\1", text)  # the hints are valid declarations
    assert Schema.from_toml(filled).open_columns == ("any",)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows: dict[str, Any] = {
        "age": [20.0 + i % 50 for i in range(5000)],
        "town": ["secret-town"] * 5000,
        "member": [True] * 5000,
    }
    rows["customer_id"] = list(range(5000))
    pl.DataFrame(rows).write_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def test_the_schema_of_a_table_can_be_used_as_it_is(table: Path, tmp_path: Path) -> None:
    run, out = CliRunner().invoke, tmp_path / "schema.toml"
    printed = run(app, ["init", str(table)])
    assert printed.exit_code == 0
    assert "[columns.age]" in printed.output
    assert '# "customer_id": its name suggests an identifier' in printed.output
    assert "secret" not in printed.output
    assert run(app, ["init", str(table), "-o", str(out)]).exit_code == 0
    assert out.read_text() == printed.output
    again = run(app, ["init", str(table), "-o", str(out)])
    assert again.exit_code == 1
    assert "--force" in again.output
    assert run(app, ["init", str(table), "-o", str(out), "--force", "--target", "age"]).exit_code == 0
    checked = run(app, ["check", str(out), str(table)])
    assert checked.exit_code == 0
    assert "3 columns, target age" in checked.output
    assert "To be found privately: age, town" in checked.output
    assert run(app, ["init", str(table), "--target", "nowhere"]).exit_code == 1
    assert run(app, ["init", str(tmp_path / "nowhere.parquet")]).exit_code == 1


def test_a_csv_file_declares_no_types(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order_id,amount,comment\n7,secret,secret\n")
    printed = CliRunner().invoke(app, ["init", str(tmp_path / "orders.csv"), "--target", "amount"])
    assert printed.exit_code == 1
    assert "no column is left to learn from" in printed.output
    (tmp_path / "orders.csv").write_text("order_id,amount,size\n7,secret,secret\n")
    printed = CliRunner().invoke(app, ["init", str(tmp_path / "orders.csv")])
    assert printed.exit_code == 0
    assert Schema.from_toml(printed.output).columns == {"amount": Undeclared(), "size": Undeclared()}


FAULTY = """
target = "incmoe"
lenght = 3
[columns.age]
type = "number"
lower = 9
upper = 1
[columns.town]
type = "numbr"
[columns.weight]
type = "number"
[columns.member]
type = "date"
"""


def test_all_gaps_are_named_at_once(table: Path, tmp_path: Path) -> None:
    run, out = CliRunner().invoke, tmp_path / "schema.toml"
    out.write_text(FAULTY)
    wrong = run(app, ["check", str(out), str(table)])
    assert wrong.exit_code == 1
    expected = [
        'unknown key "lenght"', "columns.age: the lower bound must be less", "columns.town.type must be",
        'the target "incmoe" is not one of the columns', 'has no column "weight"', 'column "member" is of type Boolean',
    ]  # fmt: skip
    for words in expected:
        assert words in wrong.output
    told = json.loads(run(app, ["check", str(out), str(table), "--json"]).output)
    assert len(told["gaps"]) == len(expected)
    assert told["open"] == ["weight", "member"]
    assert told["entries"] is None
    out.write_text("[columns.age]\ntype = \nlower =\n[columns.member]\nupper =\n")
    blank = run(app, ["check", str(out)])
    assert blank.exit_code == 1
    assert blank.output.count("is missing") == 3


def test_a_complete_schema_has_vectors(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "schema.toml"
    out.write_text(Schema({"age": Number(0, 99), "town": Category(["Rome"]), "member": Boolean()}).to_toml())
    checked = CliRunner().invoke(app, ["check", str(out), str(table)])
    assert checked.exit_code == 0
    assert "a vector of 4 entries" in checked.output
    assert "private" not in checked.output
    told = json.loads(CliRunner().invoke(app, ["check", str(out), str(table), "--json"]).output)
    assert told == {
        "schema": str(out), "columns": ["age", "town", "member"], "target": None, "person": None, "open": [],
        "entries": 4, "gaps": [],
    }  # fmt: skip


def test_names_of_a_csv_file_are_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("secret-ann,secret-bob\n1,2\n")
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    wrong = CliRunner().invoke(app, ["check", str(tmp_path / "schema.toml"), str(tmp_path / "rows.csv")])
    assert wrong.exit_code == 1
    assert wrong.output.count("has no column") == 4
    assert "secret" not in wrong.output


def test_the_command_for_bounds_prints_a_plan_and_then_toml(table: Path) -> None:
    alone = typer.Typer()
    alone.command()(bounds)
    result = CliRunner().invoke(alone, [str(table), "--column", "age", "--epsilon", "8"])
    assert result.exit_code == 0
    assert result.stderr.startswith("Plan: Bounds")
    assert Schema.from_toml(result.stdout).columns == {"age": Number(20, 80)}
    for arguments in (["--epsilon", "0"], ["--epsilon", "1", "--outside", "2"], ["--epsilon", "1", "-c", "town"]):
        wrong = CliRunner().invoke(alone, [str(table), "--column", "age", *arguments])
        assert wrong.exit_code == 1
        assert wrong.stderr.startswith("Error: ")
        assert not wrong.stdout
        assert "secret" not in wrong.output
    assert not Schema.from_toml(result.stdout).open_columns
