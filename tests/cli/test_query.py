"""``snugdp query``: the plan first, then one charge; refusals and empty budgets have exit codes of their own."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import snugdp
from tests.cli.people import run
from tests.effort import sampled

_ROWS = 8_000
_SCHEMA = """
[columns.age]
type = "number"
lower = 0
upper = 120
[columns.way]
type = "category"
values = ["car", "train"]
[columns.old]
type = "boolean"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame(
        {
            "age": [20.0 + (i * 37) % 50 for i in range(_ROWS)],
            "way": ["car", "car", "train", "moon"] * (_ROWS // 4),
            "old": [True, False, False, False] * (_ROWS // 4),
            "bonus": [0.0, 5000.0] * (_ROWS // 2),
        }
    )
    table.write_parquet("t.parquet")
    table.write_csv("t.csv")
    (tmp_path / "t.toml").write_text(_SCHEMA)
    return tmp_path


def ask(words: str, *more: str, code: int = 0) -> Any:
    return run("query", *words.split(), *more, code=code)


def ledger(neighbours: str = "add_remove") -> None:
    snugdp.Ledger.open("t.ledger", dataset="t", budget=snugdp.Budget(2, 1e-5, neighbours)).close()


def spent() -> float:
    with snugdp.Ledger.open("t.ledger") as book:
        return float(book.spent.epsilon)


@sampled(2)
@pytest.mark.parametrize("file", ["t.parquet", "t.csv"])
def test_numbers_without_bounds(folder: Path, file: str) -> None:
    ledger()
    for words, low, high in (
        (f"median {file} -c age --step 1", 42, 47),
        (f"quantile {file} -c age --q 0.9", 60, 68),
        (f"minimum {file} -c age --lower 0 --step 1", 19, 22),
        (f"maximum {file} -c age --step 1", 65, 70),
        (f"interquartile-range {file} -c age", 20, 30),
    ):
        told = json.loads(ask(words, "--epsilon", "2", "--json").stdout)
        assert low <= told["value"] <= high
        assert "found" not in told
    words = ask(f"trimmed-mean {file} -c age --epsilon 500").output  # with hardly any noise bounds are surely found
    assert "Found privately: from" in words
    told = json.loads(ask(f"median {file} -c age --beta 1 --epsilon 500 --json").stdout)
    assert told["found"]["lower"] < 20
    assert told["found"]["upper"] > 69


@pytest.mark.parametrize("file", ["t.parquet", "t.csv"])
def test_numbers_of_files(folder: Path, file: str) -> None:
    for words, low, high in (
        ("median FILE", 30, 60),
        ("quantile FILE --q 0.9 --neighbours replace", 50, 80),
        ("trimmed-mean FILE --delta 1e-6", 40, 50),
    ):
        given = f"{words.replace('FILE', file)} -c age --schema t.toml --epsilon 8 --beta 2 --json"
        told = json.loads(ask(given).stdout)
        assert told["outcome"] == "released", words
        assert low < told["value"] < high, words
        assert told["cost"]["epsilon"] == 8
        assert told["cost"]["neighbours"] == ("add_remove" if words.startswith("median") else "replace")


@sampled(6)
@pytest.mark.parametrize("file", ["t.parquet", "t.csv"])
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_draws_from_files(folder: Path, file: str, relation: str) -> None:
    """Rows are 20 to 69, each of 160 rows: with a step the answers are whole."""
    for words, values in (
        ("median FILE", [44, 45]),
        ("median FILE --method exponential", [44, 45]),
        ("quantile FILE --q 0.9", [64, 65]),
        ("quantiles FILE --q 0.1 --q 0.9", [[low, high] for low in (24, 25) for high in (64, 65)]),
        ("interquartile-range FILE", [24, 25, 26]),
        ("minimum FILE --beyond 60", [20]),
        ("maximum FILE --beyond 60", [69]),
    ):
        given = (
            f"{words.replace('FILE', file)} -c age --schema t.toml --step 1 --epsilon 8 --neighbours {relation} --json"
        )
        told = json.loads(ask(given).stdout)
        assert told["outcome"] == "released", words
        assert told["value"] in values, words
        assert told["cost"]["epsilon"] == 8
        assert not told["cost"].get("delta")
        assert told["cost"]["neighbours"] == relation


def test_a_draw_has_words_of_its_own(folder: Path) -> None:
    told = ask("quantiles t.parquet -c age --q 0.5 --q 0.1 --lower 0 --upper 120 --step 1 --epsilon 20").stdout
    assert "never refused" in told
    assert "ranks" in told
    assert re.search(r"Released: quantiles of age = 4[45], 2[45]$", told, re.MULTILINE)


@sampled(2)
@pytest.mark.parametrize("file", ["t.parquet", "t.csv"])
def test_labels_of_files(folder: Path, file: str) -> None:
    for words, value in (
        ("mode FILE -c way --schema t.toml", "car"),
        ("mode FILE -c way --values train,car", "car"),
        ("vote FILE -c way --values train,moon,car", "car"),
        ("vote FILE -c old --schema t.toml", False),
    ):
        assert json.loads(ask(f"{words.replace('FILE', file)} --epsilon 2 --json").stdout)["value"] == value, words
    assert "mode of way = car" in ask(f"mode {file} -c way --values car,train --epsilon 2").stdout


def test_values_are_read_as_the_column_declares_them(folder: Path) -> None:
    for words, value in (("-c bonus --values 0,1", 0), ("-c old --values true,false", False)):
        assert json.loads(ask(f"vote t.parquet {words} --epsilon 2 --json").stdout)["value"] == value
    assert "must be numbers" in ask("mode t.parquet -c bonus --values a --epsilon 1", code=1).stderr
    assert "true and false" in ask("mode t.parquet -c old --values a --epsilon 1", code=1).stderr


def test_a_plan_is_free_and_a_release_is_charged_once(folder: Path) -> None:
    ledger()
    words = "median t.parquet -c age --lower 0 --upper 120 --epsilon 1 --beta 2 --ledger t.ledger"
    planned = json.loads(ask(words, "--plan", "--json").stdout)
    assert planned["ledger"]["accepted"] is True
    assert planned["cost"]["epsilon"] == 1
    assert "Plan: Median" in ask(words, "--plan").stdout
    assert spent() == 0
    first = json.loads(ask(words, "--key", "june", "--json").stdout)
    again = json.loads(ask(words, "--key", "june", "--json").stdout)
    assert first["value"] == again["value"]
    assert first["receipt"] == again["receipt"]
    assert spent() == 1
    text = ask(words).stdout
    assert text.index("Plan: Median") < text.index("Released: median of age")
    assert spent() == 2
    short = ask(words, code=4)
    assert "does not cover" in short.stderr
    assert "Released" not in short.stdout


def test_a_refusal_is_charged_and_ends_with_three(folder: Path) -> None:
    ledger()
    words = "median t.parquet -c bonus --lower 0 --upper 10000 --beta 100 --epsilon 1 --delta 1e-9 --ledger t.ledger"
    refused = ask(words, "--json", code=3)
    told = json.loads(refused.stdout)
    assert (told["outcome"], told["value"]) == ("refused", None)
    assert "Refused" in refused.stderr
    assert spent() == 1


@pytest.mark.slow
def test_mistakes_cost_nothing(folder: Path) -> None:
    ledger()
    for words, said in (
        ("median t.parquet -c age --lower 120 --upper 0", "bound"),
        ("median t.parquet -c way --lower 0 --upper 120", "numbers"),
        ("median t.parquet -c way --schema t.toml", "not a number"),
        ("median t.csv -c salary --lower 0 --upper 120", "no column"),
        ("median none.parquet -c age --lower 0 --upper 120", "no file"),
        ("median t.parquet -c bonus --schema t.toml", "has no column"),
        ("mode t.parquet -c age --schema t.toml", "--values"),
        ("quantile t.parquet -c age --q 2 --schema t.toml", "between 0 and 1"),
        ("quantile t.parquet -c age --q 0.5 --schema t.toml --neighbours replace", "replace"),  # the ledger is not
        ("quantile t.parquet -c age --q 0.5 --schema t.toml --beta 1", "replace"),
        ("quantile t.parquet -c age --q 1 --schema t.toml", "maximum"),
        ("quantiles t.parquet -c way --q 0.5 --lower 0 --upper 1", "numbers"),
        ("median t.parquet -c age --schema t.toml --method guess", "method"),
        ("maximum t.parquet -c age --schema t.toml --beyond -1", "beyond"),
    ):
        assert said in ask(words, "--epsilon", "1", "--ledger", "t.ledger", code=1).stderr, words
    assert "--ledger too" in ask("median t.parquet -c age --schema t.toml --epsilon 1 --key a", code=1).stderr
    assert spent() == 0


def test_a_ledger_of_the_other_relation(folder: Path) -> None:
    ledger("replace")
    words = "quantile t.csv -c age --q 0.5 --schema t.toml --epsilon 1 --beta 2 --ledger t.ledger --json"
    told = json.loads(ask(words, "--neighbours", "replace").stdout)
    assert told["cost"]["neighbours"] == "replace"
    assert told["ledger"]["left"]["epsilon"] == 1
