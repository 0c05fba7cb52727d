"""``--person``: commands that protect persons, schemas that name them, and ledgers that are for them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from snugdp import Ledger, load
from snugdp.cli.main import app
from tests.effort import often, repeated, sampled

PLAN = "one person, whatever the number of rows"
QUICK = ("--method", "adassp")[: often(2, 0)]
EPSILON = str(often(9, 1))  # beyond 8 a plan for persons is that for one row of each, which is quick to calibrate


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(500), 1 + np.arange(500) % 5)
    age, city = rng.uniform(18, 80, 500)[who], np.array(["Oslo", "Rome"])[who % 2]
    value = 20 + age / 2 + rng.normal(0, 3, len(who))
    pl.DataFrame({"customer_id": who, "age": age, "city": city, "value": value}).write_parquet(tmp_path / "o.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output


def create(unit: str) -> str:
    name = f"{unit}.ledger"
    run("ledger", "create", name, "--dataset", "orders", "--epsilon", "19", "--delta", "1e-5", "--unit", unit)
    return name


PERSON = ("--person", "customer_id", "-y")
COMMANDS: dict[str, tuple[str, ...]] = {
    "mean": ("query", "mean", "o.parquet", "-c", "value", "--epsilon", "1", *PERSON),
    "median": ("query", "median", "o.parquet", "-c", "value", "--epsilon", "1", *PERSON),
    "vote": ("query", "vote", "o.parquet", "-c", "city", "--values", "Oslo,Rome", "--epsilon", "1", *PERSON),
    "groups": ("query", "group-by", "o.parquet", "--by", "city", "-s", "value=mean", "--epsilon", "1", *PERSON),
    "count by": ("query", "count", "o.parquet", "--by", "city", "--delta", "1e-6", "--epsilon", "1", *PERSON),
    "bounds": ("bounds", "o.parquet", "-c", "age", "--epsilon", "1", *PERSON),
    "fit": ("fit", "linear", "o.parquet", "--target", "value", "--epsilon", EPSILON, "-o", "m.json", *PERSON),
}


def test_counts_say_that_they_count_persons(orders: Path) -> None:
    said = "numbers of rows are numbers of persons"
    count = ("query", "count", "o.parquet", "--epsilon", "1", *PERSON)
    assert said in run(*count)
    assert said not in run(*count, "--max-rows", "3")
    assert said not in run("query", "count", "o.parquet", "--epsilon", "1", "-y")


@sampled(9)
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_protect_persons(orders: Path, name: str) -> None:
    ledger = create("person")
    words = COMMANDS[name]
    assert PLAN in run(*words, "--ledger", ledger)
    with Ledger.open(ledger) as book:
        assert len(book.entries()) == 1
    alone = [word for word in words if word not in ("--person", "customer_id")]
    assert "protects persons, but the release protects single rows" in run(*alone, "--ledger", ledger, code=1)
    assert "protects single rows, but the release protects persons" in run(*words, "--ledger", create("row"), code=1)
    if name == "fit":
        model = load(orders / "m.json")
        assert (model.plan_.unit.value, model.schema.person) == ("person", "customer_id")
        assert "customer_id" not in model.feature_names_in_


@pytest.mark.slow
@repeated
def test_a_schema_names_the_persons(orders: Path) -> None:
    given = ("--target", "value", "--person", "customer_id", "-o", "o.toml")
    run("schema", "init", "o.parquet", *given)
    assert 'person = "customer_id"' in (orders / "o.toml").read_text()
    assert "persons by customer_id" in run("schema", "check", "o.toml", "o.parquet")
    assert json.loads(run("schema", "check", "o.toml", "--json"))["person"] == "customer_id"
    for words in (
        ("query", "mean", "o.parquet", "-c", "value", "--schema", "o.toml", "--epsilon", "1", "--plan"),
        ("describe", "o.parquet", "o.toml", "-c", "age", "--epsilon", "1", "--plan"),
        ("fit", "linear", "o.parquet", "o.toml", "--epsilon", EPSILON, "--plan", *QUICK),
        ("plan", "linear", "o.toml", "--epsilon", EPSILON, "--rows", "1000", *QUICK),
    ):
        assert PLAN in run(*words)


@pytest.mark.slow
@repeated
def test_plans_are_held_against_the_ledger(orders: Path) -> None:
    words = ("plan", "linear", "o.parquet", "--target", "value", "--epsilon", EPSILON, "--rows", "1000", *QUICK)
    assert "this ledger protects persons" in run(*words, "--ledger", create("person"), code=1)
    assert "After this fit" in run(*words, "--person", "customer_id", "--ledger", "person.ledger")


def test_several_rows_of_a_person(orders: Path) -> None:
    words = (*COMMANDS["mean"], "--max-rows", "3", "--json")
    found: dict[str, Any] = json.loads(run(*words).splitlines()[-1])
    assert found["unit"] == "person"
    assert "at most 3 rows of each person" in found["plan"]
    assert "Use max_rows=1" in run(*COMMANDS["fit"], "--method", "posterior", "--max-rows", "2", code=1)


TOML = """
target = "buys"
person = "customer_id"

[columns.age]
type = "number"
lower = 18
upper = 80

[columns.buys]
type = "boolean"
"""


@pytest.mark.slow
@repeated
def test_grids_and_teachers_protect_persons(orders: Path) -> None:
    """By the schema or by --person, which comes first; a ledger for rows refuses, before anything is trained."""
    table = pl.read_parquet("o.parquet").with_columns(buys=pl.col("age") > 50, row=pl.int_range(pl.len()))
    table.write_parquet("p.parquet")
    table[:40].drop("customer_id").write_parquet("public.parquet")
    (orders / "p.toml").write_text(TOML)
    for unit in ("row", "person"):
        create(unit)
    teachers = ("--queries", "public.parquet", "--teachers", "8", "--test", "none", "-o", "s.json")
    by_row: tuple[str, ...] = ("--person", "row")
    for persons, words in (
        (
            ((), by_row),
            ("select", "logistic", "p.parquet", "p.toml", "--validation", "public.parquet", "--max-rows", "2"),
        ),
        (((),), ("pate", "train", "p.parquet", "p.toml", *teachers)),
    ):
        for person in persons[: often(1, 2)]:
            assert PLAN in run(*words, *person, "--epsilon", "2", "-y", "--ledger", "person.ledger")
        wrong = run(*words, "--epsilon", "2", "-y", "--ledger", "row.ledger", code=1)
        assert "protects single rows, but the release protects persons" in wrong
        assert 'no column "nobody"' in run(*words, "--epsilon", "2", "-y", "--person", "nobody", code=1)
    assert load(orders / "s.json").plan_.unit.value == "person"
    run("report", "s.json", "-o", "r.html")
    assert "whatever the number of rows" in (orders / "r.html").read_text()
    predicted = run("predict", "s.json", "p.parquet", "--keep", "customer_id")
    assert predicted.startswith("customer_id")
    assert "leave out max_rows" in run(
        "pate", "train", "p.parquet", "p.toml", *teachers, "--epsilon", "4", "--max-rows", "2", code=1
    )


def test_what_is_wrong_is_said(orders: Path) -> None:
    words = ("--epsilon", "1", "-y", "--person", "nobody")
    assert 'no column "nobody"' in run("query", "mean", "o.parquet", "-c", "value", *words, code=1)
    assert 'no column "nobody"' in run("fit", "linear", "o.parquet", "--target", "value", *words, code=1)
    assert 'no column "nobody"' in run("schema", "init", "o.parquet", "--person", "nobody", code=1)
    mean = ("query", "trimmed-mean", "o.parquet", "-c", "value", "--lower", "0", "--upper", "99", "--epsilon", "1")
    assert "give --rows, the number of persons" in run(*mean, *PERSON, code=1)
    assert "Released" in run(*mean, *PERSON, "--rows", "500")
    create = ("ledger", "create", "new.ledger", "--dataset", "o", "--epsilon", "1", "--unit")
    assert "unit says whom the ledger protects" in run(*create, "one customer", code=1)
