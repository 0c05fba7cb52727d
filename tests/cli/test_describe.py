"""``snugdp describe``: on the terminal, as JSON and in a file, and mistakes that cost nothing."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from snugdp import Boolean, Budget, Category, Ledger, Number, Schema
from snugdp.cli.main import app
from tests.effort import sampled

PEOPLE = pl.DataFrame(
    {"age": [20 + i % 41 for i in range(3000)], "city": ["Oslo", "Rome", None] * 1000, "own": [True] * 3000}
)
SCHEMA = Schema({"age": Number(0, 120), "city": Category(["Oslo", "Rome"]), "own": Boolean()})


@pytest.fixture
def people(tmp_path: Path) -> tuple[str, str]:
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    return str(tmp_path / "people.parquet"), str(tmp_path / "people.toml")


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["describe", *words])
    return done.exit_code, done.stdout, done.stderr


def test_tables_for_people(people: tuple[str, str]) -> None:
    code, output, _ = run(*people, "--epsilon", "2", "-y", "--step", "age=1")
    assert code == 0, output
    for words in ("Plan: Describe", "rows", "numbers", "most frequent", "Rome", "in 19 of 20 cases"):
        assert words in output


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_table_into_a_file(people: tuple[str, str], tmp_path: Path, form: str) -> None:
    out = tmp_path / "out" / f"table.{form}"
    out.parent.mkdir()
    code, output, _ = run(*people, "--epsilon", "2", "-y", "-o", str(out), "--report", str(tmp_path / "out" / "r.html"))
    assert code == 0, output
    frame = pl.read_parquet(out) if form == "parquet" else pl.read_csv(out)
    assert frame["column"].to_list() == ["age", "city", "own"]
    assert "standard deviation" in (tmp_path / "out" / "r.html").read_text(encoding="utf-8")


def test_one_object_for_machines(people: tuple[str, str]) -> None:
    code, output, _ = run(*people, "--epsilon", "2", "-c", "age", "-c", "city", "-s", "mean", "--q", "0.5", "--json")
    found = json.loads(output)
    assert code == 0
    assert [one["column"] for one in found["columns"]] == ["age", "city"]
    assert {one["value"] for one in found["values"]} == {"Oslo", "Rome"}
    assert found["outcome"] == "released"


def test_a_retry_with_its_key_is_free_and_the_same(people: tuple[str, str], tmp_path: Path) -> None:
    ledger = str(tmp_path / "people.ledger")
    Ledger.open(ledger, dataset="people", budget=Budget(1)).close()
    words = (*people, "--epsilon", "1", "--delta", "0", "--ledger", ledger, "--key", "first", "--json")
    first, again = run(*words), run(*words)
    assert first[0] == again[0] == 0
    assert json.loads(first[1])["columns"] == json.loads(again[1])["columns"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--step", "age"), "COLUMN=NUMBER"),
        (("-c", "height"), 'no column "height"'),
        (("-s", "median"), "statistics must be some of"),
        (("-o", "table.txt"), ".parquet or .csv"),
        (("--q", "2"), "q must be between 0 and 1"),
    ],
)
def test_mistakes_cost_nothing(people: tuple[str, str], tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    ledger = tmp_path / "people.ledger"
    Ledger.open(ledger, dataset="people", budget=Budget(1)).close()
    code, _, error = run(*people, "--epsilon", "1", "--delta", "0", "--ledger", str(ledger), "-y", *words)
    assert code != 0
    assert said in error
    with Ledger.open(ledger) as book:
        assert book.spent.epsilon == 0


@sampled(2)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_without_a_schema_all_is_found(people: tuple[str, str], tmp_path: Path, form: str) -> None:
    file = str(tmp_path / f"people.{form}")
    PEOPLE.with_columns(customer_id=pl.int_range(pl.len())).write_csv(tmp_path / "people.csv")
    code, output, _ = run(file, "--epsilon", "4", "-y", "--report", str(tmp_path / "r.html"))
    assert code == 0, output
    for words in ("Rome", "found privately", "may lie anywhere", "Left out: customer_id" if form == "csv" else "True"):
        assert words in output
    assert "found privately" in (tmp_path / "r.html").read_text(encoding="utf-8")
    code, output, error = run(file, "--epsilon", "1", "--delta", "0", "-y")
    assert code != 0
    assert "delta > 0" in error


def test_without_a_schema_for_machines(people: tuple[str, str]) -> None:
    code, output, _ = run(people[0], "--epsilon", "4", "--json")
    found = json.loads(output)
    assert code == 0
    assert [one["type"] for one in found["columns"]] == ["number", "category", "boolean"]
    assert found["left_out"] == {}


def test_the_plan_is_free(people: tuple[str, str]) -> None:
    code, output, _ = run(*people, "--epsilon", "1", "--plan")
    assert code == 0
    assert "Plan: Describe" in output
    assert "most frequent" not in output
