"""``snugdp query group-by``: a table on the terminal, as JSON and in a file, and mistakes that cost nothing."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from snugdp import Budget, Ledger
from snugdp.cli.main import app
from tests.effort import sampled

PEOPLE = pl.DataFrame(
    {"city": ["Oslo", "Rome"] * 500 + ["Lima"], "year": [2000, 2001, 2002] * 333 + [2000, 2000], "age": [40.0] * 1001}
)


@pytest.fixture
def people(tmp_path: Path) -> str:
    PEOPLE.write_parquet(tmp_path / "people.parquet")
    return str(tmp_path / "people.parquet")


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["query", "group-by", *words])
    return done.exit_code, done.output


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_table_into_a_file(people: str, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out" / f"table.{form}"
    out.parent.mkdir()
    words = [
        "--by",
        "city",
        "-s",
        "age=mean,standard-deviation",
        "--bounds",
        "age=0,120",
        "--epsilon",
        "2",
        "--delta",
        "1e-9",
    ]
    code, output = run(people, *words, "-o", str(out), "-y")
    assert code == 0, output
    assert "Released: 2 groups by city" in output
    assert "Wrote" in output
    frame = pl.read_parquet(out) if form == "parquet" else pl.read_csv(out)
    assert frame["city"].to_list() == ["Oslo", "Rome"]
    assert "age_standard_deviation_error" in frame.columns


def test_listed_keys_as_json(people: str) -> None:
    keys = ["--by", "city", "--by", "year", "--keys", "city=Oslo,Rome", "--keys", "year=2000,1999"]
    code, output = run(people, *keys, "--epsilon", "2", "--delta", "0", "--json", "-y")
    assert code == 0, output
    table = json.loads(output.splitlines()[-1])["table"]
    assert table["city"] == ["Oslo", "Oslo", "Rome", "Rome"]
    assert table["year"] == [2000, 1999] * 2
    code, output = run(people, "--by", "city", "--keys", "Oslo,Rome", "--epsilon", "2", "--delta", "0", "--plan")
    assert code == 0
    assert "all 2 listed groups" in output


@sampled(2)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "age"], "must hold text, whole numbers or booleans, not Float64"),
        (["--by", "town"], 'no column "town"'),
        ([], "--by city"),
        (["--by", "city", "-s", "age"], "such as income=mean,sum"),
        (["--by", "city", "-s", "age=mean", "--bounds", "age=1"], "bounds are two numbers"),
        (["--by", "city", "--delta", "0"], "delta > 0"),
        (["--by", "city", "--by", "year", "--keys", "Oslo"], "say whose keys they are"),
        (["--by", "city", "-o", "table.xlsx"], "must end in .parquet or .csv"),
    ],
)
def test_mistakes_cost_nothing(people: str, tmp_path: Path, words: list[str], said: str) -> None:
    at = str(tmp_path / "ledger")
    Ledger.open(at, dataset="people", budget=Budget(3, 1e-5)).close()
    code, output = run(people, *words, "--epsilon", "1", "--ledger", at, "-y")
    assert code == 1
    assert said in " ".join(output.split())
    with Ledger.open(at) as ledger:
        assert not ledger.spent.epsilon


AGE = ["-c", "age", "--lower", "0", "--upper", "120"]


@sampled(4)
@pytest.mark.parametrize(
    ("words", "column"),
    [
        (["count"], "count"),
        (["mean", *AGE], "age_mean"),
        (["sum", *AGE], "age_sum"),
        (["standard-deviation", *AGE], "age_standard_deviation"),
        (["median", *AGE], "age_median"),
        (["quantile", *AGE, "--q", "0.9"], "age_quantile_0.9"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_a_query_of_one_column_by_group(people: str, tmp_path: Path, words: list[str], column: str) -> None:
    out = tmp_path / "table.parquet"
    given = ["query", words[0], people, *words[1:], "--by", "city", "--epsilon", "20", "--delta", "1e-9"]
    done = CliRunner().invoke(app, [*given, "-y", "-o", str(out)])
    assert done.exit_code == 0, done.output
    table = pl.read_parquet(out)
    assert table["city"].to_list() == ["Oslo", "Rome"]
    assert column in table.columns
    assert table["count"].to_list() == pytest.approx([500, 500], abs=20)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["count", "--keys", "Oslo"], "name their column with --by"),
        (["mean", *AGE, "-o", "table.csv"], "name their column with --by"),
        (["count", "-c", "age", "--by", "city"], "leave out --column"),
        (["median", *AGE, "--by", "city", "--beta", "1"], "leave out --beta"),
        (["count", "--by", "nowhere"], "nowhere"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_mistakes_with_groups(people: str, words: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["query", words[0], people, *words[1:], "--epsilon", "1", "--delta", "1e-9", "-y"])
    assert done.exit_code == 1
    assert says in " ".join(done.output.split())
